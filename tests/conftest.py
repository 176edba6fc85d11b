"""What holds for all tests."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)  # no test fails because it takes its time
settings.load_profile("patient")
