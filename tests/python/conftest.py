import pytest


def pytest_configure(config: pytest.Config) -> None:
    """`slow` tests vary what others have shown: `make test-all` runs them (jobs.slow)."""
    config.addinivalue_line("markers", "slow: only in make test-all")
