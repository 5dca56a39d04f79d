"""The bounded memory: what stays, what goes, and that the bound holds."""

from studio.store.memory import RecentlyUsed


def test_the_least_recently_used_goes_first() -> None:
    memory: RecentlyUsed[str] = RecentlyUsed(20)
    memory.put("a", "A", 10)
    memory.put("b", "B", 10)
    assert memory.get("a") == "A"
    memory.put("c", "C", 10)
    assert [memory.get(key) for key in "abc"] == ["A", None, "C"]
    assert memory.num_bytes == 20


def test_a_value_put_again_is_counted_once() -> None:
    memory: RecentlyUsed[str] = RecentlyUsed(20)
    for value in ("old", "older", "new"):
        memory.put("a", value, 15)
    assert memory.get("a") == "new"
    assert memory.num_bytes == 15


def test_a_value_above_the_bound_is_not_kept() -> None:
    memory: RecentlyUsed[str] = RecentlyUsed(20)
    memory.put("a", "A", 21)
    assert memory.get("a") is None
    assert memory.num_bytes == 0
