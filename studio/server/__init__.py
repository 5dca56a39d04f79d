"""The studio over HTTP: speech as it is made, takes and clips by id. Knows starlette and nothing of the page."""
