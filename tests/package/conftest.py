"""What the tests of the package share."""

import pytest

from tests.tools.node import Node


@pytest.fixture(scope="session")
def node():
    """One Node process, which calls what the figures' scripts export."""
    process = Node()
    yield process
    process.close()
