"""The words for a start that is refused: by Docker, for a port, the model, the command line."""

import re

from sentinel.core.diagnosis.wording import PART, SHAPE, START, pattern

_HUB = r"(?:huggingface|hf-mirror|hf\.co|hf\.space|xethub|modelscope)"

RUNTIME = (
    pattern(
        "container_runtime_error",
        r"OCI runtime (?:create|exec) failed|nvidia-container-cli: |failed to create task for",
        r"could not select device driver",
        r"exec: .*: (?:executable file not found|no such file or directory|permission denied)",
        r"^exec \S+: (?:exec format error|no such file or directory|permission denied)",
        r"(?:^|: )(?:vllm|python3?): (?:command )?not found$",
        r"can't open file '[^']*'",
        sure=0.93,
        only_starting=True,
        anywhere=True,
    ),
)

PORT = (
    pattern(
        "port_in_use",
        r"Bind for \S*:(?P<bound>\d+) failed: port is already allocated",
        sure=0.97,
        **SHAPE,
    ),
    pattern(
        "port_in_use",
        r"any local network address\. port: (?P<bound>\d+)",
        r"Address already in use \(addr='\w+://\S*?:(?P<port>\d+)'",
    ),
    pattern(
        "port_in_use",
        r"(?i:\[Errno 98\].*?(?:address \('(?P<host>[^']*)', (?P<port>\d+)|$))",
        r"failed to bind to \S*?:(?P<bound>\d+)\b.*(?i:errno: 98|EADDRINUSE|already in use)",
        r"(?i:EADDRINUSE|address already in use)",
    ),
)

MODEL = (
    pattern(
        "hub_unreachable",
        r"LocalEntryNotFoundError|OfflineModeIsEnabled|outgoing traffic has been disabled",
        r"couldn't connect to 'https?://|Cannot (?:connect to|reach) .*" + _HUB,
        r"(?:Max retries exceeded|Connection|[Tt]imed? ?out|Failed to resolve|Proxy|SSLError"
        r"|CERTIFICATE_VERIFY_FAILED|50[0234] Server Error|429 Client Error).*" + _HUB,
        _HUB + r".*(?:Max retries exceeded|Failed to resolve|[Tt]imed? ?out|Cannot connect"
        r"|CERTIFICATE_VERIFY_FAILED)",
        sure=0.94,
        **START,
    ),
    pattern(
        "hub_unreachable",
        r"^(?:[\w.]+\.)?(?:ConnectTimeout|ReadTimeout|ConnectError|ProxyError|SSLError"
        r"|NameResolutionError|gaierror|SSLCertVerificationError)\b",
        r"^requests\.exceptions\.ConnectionError",
        r"Temporary failure in name resolution|Name or service not known",
        sure=0.75,
        **START,
    ),
    pattern(
        "model_not_found",
        r"(?P<gated>GatedRepoError|gated repo|Access to model \S+ is restricted)",
        r"(?P<refused>40[13]) Client Error.*" + _HUB,
        only_starting=True,
        more=4,
    ),
    pattern(
        "model_not_found",
        r"RepositoryNotFoundError|RevisionNotFoundError|EntryNotFoundError",
        r"404 Client Error.*" + _HUB,
        sure=0.93,
        only_starting=True,
        more=3,
    ),
    pattern(
        "model_not_found",
        r"HFValidationError|Repo id must (?:be in the form|use alphanumeric)",
        r"is not a local folder and is not a valid model identifier",
        r"NotExistError: |the model may not exist",
        r"Invalid repository ID or local directory specified|Incorrect path_or_model_id",
        r"Cannot find any \w*\s?model weights with|does not appear to have a file named",
        r"Error no file named|No supported config format found|Unrecognized model in ",
        r"Can't load (?:the )?(?:config|configuration|tokenizer|model|feature|image)\b",
        r"No adapter found for|Loading lora \S+ failed|LoRAAdapterNotFound|adapter_config\.json",
        sure=0.94,
        only_starting=True,
        more=1,
    ),
    pattern(
        "model_not_found",
        r"(?:No such file or directory|\[Errno 2\]).*"
        r"(?:model|config\.json|tokenizer|safetensors|\.gguf|/hub/|/snapshots/)",
        r"\[Errno 13\] Permission denied: '[^']*"
        r"(?:model|hub|huggingface|safetensors|config\.json)",
        r"(?P<broken>SafetensorError|Error while deserializing header"
        r"|weights were not initialized from checkpoint|is not a valid JSON file"
        r"|PytorchStreamReader failed)|Could not find checkpoint files",
        sure=0.85,
        **START,
    ),
)

ARGUMENTS = (
    pattern(
        "bad_arguments",
        r"^(?:vllm|python3?|[\w/.-]+\.py)(?: [\w-]+)*: error: (?P<wrong>.+)$",
        sure=0.97,
        only_starting=True,
        anywhere=True,
    ),
    pattern(
        "bad_arguments",
        r"validation errors? for (?P<section>\w*(?:Config|Args|Params|Arguments))",
        sure=0.97,
        only_starting=True,
        more=6,
    ),
    pattern(
        "bad_arguments",
        r"(?P<wrong>User-specified max_model_len \(\d+\) is greater than[^.]*"
        r"|max_num_batched_tokens \(\d+\) (?:must|is|should).*"
        r"|.*must be divisible by (?:the )?(?:tensor|pipeline)[ _]parallel.*"
        r"|Model architectures? \[.*|.*has no vLLM implementation.*"
        r"|.*but Transformers does not recognize.*|Unrecognized configuration class.*"
        r"|.*is not divisible by \d+.*|Too large swap space.*"
        r"|.*[Cc]annot assign requested address.*|.*attempting to bind on address.*denied.*"
        r"|.*[Qq]uantization.*(?:not supported|does not match|Minimum capability).*"
        r"|Unknown quantization.*|Invalid quantization.*|Unsupported quantization.*"
        r"|Cannot find the config file for.*|.*not supported for quantization.*"
        r"|Bfloat16 is only supported on GPUs.*|Unknown dtype.*"
        r"|.*dtype .* (?:is )?not supported.*|.*does not support (?:bfloat16|float16).*"
        r"|.*[Ww]orld size \(\d+\) is larger than the number of available GPUs.*"
        r"|Ray does not allocate any GPUs.*|Current node has no GPU available.*"
        r"|.*No available node types can fulfill.*|Not enough resources to allocate \d+ .*"
        r"|.*number of required GPUs exceeds.*|.*invalid device ordinal.*"
        r"|LoRA rank \d+ is greater than max_lora_rank.*"
        r"|.*trust_remote_code=True.*|.*--trust-remote-code.*|.*requires --tool-call-parser.*"
        r"|.*invalid (?:tool call|reasoning) parser.*|The supplied chat template.*"
        r"|.*[Gg]PU memory utilization must be.*)",
        sure=0.93,
        **START,
    ),
    pattern(
        "bad_arguments",
        r"^TypeError: .*(?P<wrong>got an unexpected keyword argument .*)",
        sure=0.75,
        **START,
    ),
)

# What no wording above knows, and what vLLM raised where it reads arguments and puts a model
# together from them: told by the last of its own files in the traceback.
REFUSAL = pattern(
    "bad_arguments",
    r"^(?:[\w.]+\.)?(?:ValueError|NotImplementedError|AssertionError|ArgumentTypeError"
    r"|\w*ValidationError): (?P<wrong>.+)",
    sure=0.7,
    only_starting=True,
    **PART,
)
REFUSES = re.compile(
    r'  File "[^"]*/vllm/(?:(?P<refuses>config(?:\.py|/)|engine/arg_utils|platforms/'
    r"|(?:v1/)?attention/|model_executor/|transformers_utils/|tokenizers/|lora/|reasoning/|tool_parsers/"
    r'|entrypoints/(?:cli/|openai/(?:cli_args|tool_parsers/)|chat_utils)|utils/argparse)|)[^"]*"'
)
