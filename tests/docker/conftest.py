from tests.blackbox import hook
from tests.docker.engine import docker_engine, testbed, vllm_box

__all__ = ["docker_engine", "hook", "testbed", "vllm_box"]
