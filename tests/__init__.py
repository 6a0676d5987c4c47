"""The project's own tests: real git, real zips, real pip; nothing is mocked."""
