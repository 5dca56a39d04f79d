"""The page: everything that imports gradio. `launch.launch` starts it."""
