"""The words of CUDA, HIP, NVML and the kernel for a GPU that fails or is out of reach."""

from sentinel.core.diagnosis.wording import SHAPE, pattern

_XID = r"NVRM: Xid \([^)]*\): "

GPU = (
    pattern(
        "gpu_ecc",
        r"uncorrectable ECC error|CUDA_ERROR_ECC_UNCORRECTABLE",
        _XID + r"(?P<xid>48|64|94|95|171|172)\b",
        sure=0.97,
        **SHAPE,
    ),
    pattern(
        "gpu_lost",
        _XID + r"(?P<xid>46|62|79|109|119|120|140|143|155|156|158)\b",
        r"GPU has fallen off the bus|GPU is lost|NVMLError_GpuIsLost",
        r"Driver/library version mismatch|NVMLError_LibRmVersionMismatch",
        r"GPU requires reset|NVMLError_ResetRequired",
        r"Failed to initialize NVML: (?:GPU|Driver Not Loaded)|NVMLError_DriverNotLoaded",
        **SHAPE,
    ),
    pattern(
        "gpu_lost",
        r"Unable to determine the device handle for GPU",
        r"CUDA-capable device\(s\) is/are busy or unavailable|CUDA_ERROR_DEVICE_UNAVAILABLE",
        sure=0.8,
        **SHAPE,
    ),
    pattern(
        "gpu_detached",
        r"Failed to initialize NVML: (?:Unknown Error|Insufficient Permissions)",
        r"NVMLError_Unknown\b|NVMLError_NoPermission",
        **SHAPE,
    ),
    pattern(
        "gpu_detached",
        r"no CUDA-capable device is detected|No (?:CUDA|HIP) GPUs are available",
        r"CUDA_ERROR_NO_DEVICE|hipErrorNoDevice|CUDA driver initialization failed",
        r"Found no NVIDIA driver on your system",
        r"CUDA unknown error - this may be due to an incorrectly set up environment",
        sure=0.85,
    ),
    pattern(
        "gpu_detached",
        r"Can't initialize NVML|NVMLError_LibraryNotFound|NVML Shared Library Not Found",
        r"libcuda\.so\.1: cannot open shared object|Failed to infer device type",
        r"Device string must not be empty",
        sure=0.75,
    ),
    pattern(
        "cuda_illegal_access",
        r"an illegal memory access was encountered|device-side assert triggered",
        r"hipErrorIllegalAddress|illegal instruction was encountered|misaligned address",
        r"CUDA_ERROR_(?:ILLEGAL_ADDRESS|ASSERT)|invalid program counter|invalid address space",
    ),
    pattern(
        "cuda_illegal_access",
        r"Memory access fault by GPU node",
        _XID + r"(?P<xid>13|31)\b",
        sure=0.9,
        **SHAPE,
    ),
    pattern(
        "cuda_launch_failure",
        r"unspecified launch failure|the launch timed out and was terminated",
        r"CUDA_ERROR_LAUNCH_\w+|hipErrorLaunchFailure|HSA_STATUS_ERROR",
        r"uncorrectable NVLink error|hardware stack error",
    ),
    pattern(
        "cuda_launch_failure",
        r"OutOfResources: out of resource: ",
        r"no kernel image is available for execution|device kernel image is invalid",
        r"(?P<driver>unsupported toolchain|driver version is insufficient"
        r"|NVIDIA driver on your system is too old|Error 80[34]: [^.]*"
        r"|unsupported display driver|forward compatibility was attempted)",
        r"Torch not compiled with (?:CUDA|HIP|XPU) enabled",
        r"system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY",
        sure=0.85,
    ),
    pattern(
        "cuda_launch_failure",
        r"CUBLAS_STATUS_(?:EXECUTION_FAILED|NOT_INITIALIZED|INTERNAL_ERROR)",
        r"CUDNN_STATUS_EXECUTION_FAILED|CUDA error: unknown error",
        sure=0.7,
    ),
    pattern("cuda_launch_failure", _XID + r"(?P<xid>74|14[4-9]|150)\b", sure=0.7, **SHAPE),
)

# Whatever else CUDA and HIP have to complain of; to be tried after every other wording.
ANY_GPU = (
    pattern("cuda_launch_failure", r"(?:CUDA|HIP) error: |Triton Error \[\w+\]: ", sure=0.6),
)
