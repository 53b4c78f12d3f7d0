"""Texts of Kubernetes that suites, diagnoses and hints look for in messages and reasons. Suites get them from testbed.conformance.

Each is a part of what Kubernetes writes, in all versions from 1.34 to 1.37 unless a comment names versions.
"""

# Reasons of events of a pod.
FAILED_SCHEDULING = "FailedScheduling"
BINDING_CONDITIONS_PENDING = "BindingConditionsPending"
FAILED_SANDBOX = (
    "FailedCreatePodSandBox"  # reason of an event: the container runtime could not create the sandbox of a pod
)
FAILED_PREPARE = "FailedPrepareDynamicResources"
FAILED_CLAIM_CREATION = "FailedResourceClaimCreation"
DEVICE_TAINT_EVICTION = "DeviceTaintManagerEviction"
FAILED_SANDBOX = "FailedCreatePodSandBox"
FAILED_MOUNT = "FailedMount"

# Reasons of conditions: DisruptionTarget of a pod, EvictionInProgress of a DeviceTaintRule.
DELETION_BY_DEVICE_TAINT = "DeletionByDeviceTaintManager"
PODS_PENDING_EVICTION = "PodsPendingEviction"
EVICTION_COMPLETED = "Completed"

# Reasons of a container that waits.
CRASH_LOOP = "CrashLoopBackOff"
IMAGE_ERROR = "ErrImage"
IMAGE_PULL = "ImagePull"
INVALID_IMAGE = "InvalidImageName"
CREATE_CONTAINER_ERROR = "CreateContainerError"
RUN_CONTAINER_ERROR = "RunContainerError"

# The reason of a container that ended before its process began, such as by a hook of the container runtime.
START_ERROR = "StartError"

# Beginnings of messages of the kubelet about images, in events with the reason Failed.
IMAGE_EVENTS = ("Failed to pull image ", "Error: ErrImage", "Error: ImagePull")

# The container runtime (containerd), in FailedCreatePodSandBox. What follows may be the text of a plugin.
SANDBOX_NRI = "NRI RunPodSandbox failed"
SANDBOX_NETWORK = "failed to setup network for sandbox"

# The scheduler, in FailedScheduling and in the condition PodScheduled.
UNSCHEDULABLE = "Unschedulable"  # the reason of the condition
NO_DEVICE_FITS = "cannot allocate all claims"
CLAIM_ON_OTHER_NODE = "resourceclaim not available on the node"
ABOVE_CLAIM_LIMIT = "exceeds the claim limit of 32"
DEVICE_CLASS = "device class"  # "device class NAME does not exist"
POOL_BEING_UPDATED = "currently being updated"
WAITING_FOR_BINDING_CONDITIONS = "waiting for binding conditions for device on node"
BINDING_FAILED = "device binding failed"
INSUFFICIENT = "Insufficient "
UNTOLERATED_TAINT = "untolerated taint"  # until 1.35 followed by the taint, since 1.36 by "(s)" and no taint
# Until 1.35 with the brace, which keeps them apart from taints with longer domains.
NODE_UNREACHABLE = "{node.kubernetes.io/unreachable"
NODE_NOT_READY = "{node.kubernetes.io/not-ready"
DISK_PRESSURE = "{node.kubernetes.io/disk-pressure"
MEMORY_PRESSURE = "{node.kubernetes.io/memory-pressure"
PID_PRESSURE = "{node.kubernetes.io/pid-pressure"

# The kubelet, in FailedPrepareDynamicResources and in the status of containers.
DRIVER_NOT_REGISTERED = "is not registered"
CLAIM_NOT_FETCHED = "fetch ResourceClaim "
CHECKPOINT_NOT_WRITTEN = "checkpoint ResourceClaim "
NO_CONNECTION = "connection error"
DEADLINE_EXCEEDED = "DeadlineExceeded"
CLAIM_NOT_ALLOWED = "is not allowed to use ResourceClaim"
CLAIM_UNKNOWN_TO_AUTHORIZER = "no relationship found between node"  # the API server's answer to the kubelet
UNRESOLVABLE_CDI_DEVICES = "unresolvable CDI devices"

# The controller manager.
MARKED_FOR_DELETION = "Marking for deletion"

# The API server, when it refuses an object. The numbers are those of the suites' manifests.
ONE_KIND_OF_REQUEST = "exactly one of `exactly` or `firstAvailable` is required"
MORE_THAN_8_ITEMS = "Too many: 9: must have at most 8 items"
MORE_THAN_32_ITEMS = "Too many: 33: must have at most 32 items"
MORE_THAN_256_ITEMS = "Too many: 257: must have at most 256 items"
AT_MOST_8_ITEMS = "must have at most 8 items"
AT_MOST_16_ITEMS = "must have at most 16 items"
DUPLICATE = "Duplicate value"
TOO_LONG = "Too long"
IMMUTABLE = "field is immutable"
NOT_JSON_OBJECT = "must be a valid JSON object"
NOT_POSITIVE = "must be greater than zero"
NOT_INTEGER = "must be an integer"
DEVICE_CLASS_REQUIRED = "deviceClassName: Required value"
PARAMETERS_REQUIRED = "parameters: Required value"
PARAMETERS_TOO_LONG = "parameters: Too long"
UNKNOWN_REQUEST = "must be the name of a request in the claim"
COUNT_WITH_ALL = "must not be specified when allocationMode is 'All'"
INVALID_ALLOCATION = "status.allocation: Invalid value"
ADMIN_ACCESS_NOT_ENABLED = (
    "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
)
NO_CLAIM_SOURCE = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
TWO_CLAIM_SOURCES = "at most one of `resourceClaimName` or `resourceClaimTemplateName`"
UNKNOWN_POD_CLAIM = "must be one of the names in pod.spec.resourceClaims"
POD_LEVEL_CLAIMS = "claims may not be set for Resources at pod-level"
EPHEMERAL_CONTAINER_CLAIMS = "cannot be set for an Ephemeral Container"
DEVICE_NOT_ALLOCATED = "must be an allocated device in the claim"
NOT_CIDR = "must be a valid address in CIDR form"
NOT_CANONICAL = "must be in canonical form"
NOT_STANDARD_RESOURCE = "must be a standard resource"
NOT_EXTENDED_RESOURCE_NAME = "doesn't follow extended resource name standard"
EXCEEDED_QUOTA = "exceeded quota: quota"  # the name of the suites' ResourceQuota
CEL_COMPILATION_FAILED = "compilation failed"
CEL_NOT_BOOL = "must evaluate to bool"
CEL_TOO_COMPLEX = "too complex, exceeds cost limit"

# The API server, to an account that acts as another one.
CANNOT_IMPERSONATE = "cannot impersonate resource"
