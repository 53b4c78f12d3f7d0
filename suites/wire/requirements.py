"""What a driver owes to the kubelet that calls it, sentence by sentence. There are no tests yet, so nothing is judged by these.

A test takes its sentence from here to its `@requirement`; the ids stay.
"""

from testbed.conformance import MAY, MUST, SHOULD, WIRE, Level, Requirement

REGISTRATION = "k8s.io/kubelet: pkg/apis/pluginregistration/v1/api.proto; kubelet: pkg/kubelet/pluginmanager"
DRA = "k8s.io/kubelet: pkg/apis/dra/v1/api.proto; kubelet: pkg/kubelet/cm/dra/manager.go"
HELPER = "k8s.io/dynamic-resource-allocation: kubeletplugin/draplugin.go, interface DRAPlugin"
CDI = "Container Device Interface: SPEC.md in github.com/cncf-tags/container-device-interface"
ORDER = "sigs.k8s.io/dra-example-driver: GetOpaqueDeviceConfigs"
HEALTH = "k8s.io/kubelet: pkg/apis/dra-health/v1/api.proto; KEP-4680, resource health in the status of a pod"


def _planned(id_: str, level: Level, source: str, sentence: str, covers: str, *features: str) -> Requirement:
    return Requirement(id_, sentence, level, WIRE, source, features=features, covers=tuple(covers.split()))


PLANNED = (
    _planned(
        "REG-101",
        MUST,
        REGISTRATION,
        "The registration socket must be in the kubelet's plugin registry, with a unique name "
        "without a leading dot and a short enough path.",
        "W1",
    ),
    _planned(
        "REG-102",
        MUST,
        REGISTRATION,
        "GetInfo must return type DRAPlugin, the driver name of the ResourceSlices, and the absolute path of a reachable socket.",
        "W2",
    ),
    _planned(
        "REG-103",
        MUST,
        REGISTRATION,
        "The driver must answer GetInfo within one second, at any time and also for concurrent calls.",
        "W3",
    ),
    _planned(
        "REG-104",
        MUST,
        REGISTRATION,
        "The driver must list its supported versions as gRPC service names, the newest first, and serve each of them.",
        "W4",
    ),
    _planned(
        "REG-105",
        MUST,
        REGISTRATION,
        "The driver must keep running when the kubelet reports a failed registration, and accept a later registration.",
        "W5",
    ),
    _planned(
        "REG-106",
        MUST,
        REGISTRATION,
        "The driver's DRA service must accept calls as soon as the driver can be registered.",
        "W6",
    ),
    _planned(
        "REG-107",
        MUST,
        REGISTRATION,
        "The driver must serve several connections at once, also beside an idle one, and accept the HTTP/2 authority localhost.",
        "W7",
    ),
    _planned(
        "REG-108",
        SHOULD,
        HELPER,
        "A driver that is asked to terminate should finish running calls, remove its sockets, and exit within its grace period.",
        "W8",
    ),
    _planned(
        "PREP-101",
        MUST,
        DRA,
        "NodePrepareResources must return for an allocated claim one entry with its UID, without an error, with all devices of the driver.",
        "W9 G11",
    ),
    _planned(
        "PREP-102",
        MUST,
        DRA,
        "NodePrepareResources must return devices of the driver only, with pool and name as "
        "allocated and request names without subrequests.",
        "W10 G11",
    ),
    _planned(
        "PREP-103",
        MUST,
        HELPER,
        "The driver must prepare a prepared claim again with the same result, and create nothing more for it.",
        "W13 G13",
    ),
    _planned(
        "PREP-104",
        MUST,
        DRA,
        "NodePrepareResources must return an entry for each claim, in whatever order they are listed, and even if one is listed twice.",
        "W15",
    ),
    _planned(
        "PREP-105",
        SHOULD,
        DRA,
        "If one claim cannot be prepared, the driver should report the error in its entry and prepare the other claims of the call.",
        "W16 G11",
    ),
    _planned(
        "PREP-106",
        MUST,
        HELPER,
        "The driver must refuse to prepare a claim if the UID in the call is not that of the ResourceClaim, and prepare nothing.",
        "W17",
    ),
    _planned(
        "PREP-107",
        MUST,
        HELPER,
        "For a claim that is missing, unallocated or only has other drivers' devices, the driver must prepare nothing and keep working.",
        "W18",
    ),
    _planned(
        "PREP-108",
        SHOULD,
        HELPER,
        "The driver should refuse to prepare a device for a claim while it is prepared for another claim.",
        "W19",
    ),
    _planned(
        "PREP-109",
        MUST,
        "KEP-5018, DRA AdminAccess for ResourceClaims and ResourceClaimTemplates",
        "The driver must prepare a device in use for a claim with admin access without affecting its user, also when that claim ends.",
        "W20",
        "admin-access",
    ),
    _planned(
        "PREP-110",
        MUST,
        "API reference: ResourceClaim v1 resource.k8s.io, DeviceClaimConfiguration and OpaqueDeviceConfiguration",
        "The driver must refuse invalid configuration and name the field, ignore that for other "
        "drivers, and configure each request on its own.",
        "W21",
        "configuration",
    ),
    _planned(
        "PREP-111",
        MUST,
        DRA,
        "The driver must handle concurrent calls, for different claims and for one claim, without a deadlock and with the same result.",
        "W22",
    ),
    _planned(
        "PREP-112",
        MUST,
        DRA,
        "The driver must end a cancelled call and hold nothing, so that the next call succeeds, and answer every other call within 45 s.",
        "W23 G11",
    ),
    _planned(
        "PREP-113",
        SHOULD,
        DRA,
        "The driver should answer a call without claims, ignore unknown fields, and return an error for a malformed message.",
        "W24",
    ),
    _planned(
        "PREP-114",
        MUST,
        HELPER,
        "A driver that was killed at any point must be back within 30 s, with its sockets, slices and claims, and able to unprepare these.",
        "W28 G12",
    ),
    _planned(
        "PREP-115",
        SHOULD,
        HELPER,
        "A driver whose checkpoint is lost or corrupt should recover or report an error, and should not prepare devices that are in use.",
        "W29 G13",
    ),
    _planned(
        "PREP-116",
        SHOULD,
        ORDER,
        "The driver should apply configuration in order, the class first. "
        "Later entries should win, and those for all requests apply to each.",
        "W21",
        "configuration",
    ),
    _planned(
        "CDI-101",
        MUST,
        CDI,
        "CDI device IDs in a response must be well-formed, and an ID that is defined for one claim must not be returned for another.",
        "W11",
    ),
    _planned(
        "CDI-102",
        MUST,
        CDI,
        "The driver must write CDI spec files atomically, valid for the version that they declare, and only with host paths that exist.",
        "W12",
    ),
    _planned(
        "CDI-103",
        MUST,
        "github.com/kubernetes/kubernetes, issue 141433",
        "The driver must write a lost CDI spec file again when it is asked to prepare the claim again.",
        "W14",
    ),
    _planned(
        "CDI-104",
        SHOULD,
        DRA,
        "The driver should define the CDI device IDs of a response before it sends the response.",
        "W11",
        "cdi",
    ),
    _planned(
        "UNPREP-101",
        MUST,
        DRA,
        "After NodeUnprepareResources, the driver must be able to prepare the claim's device for another claim.",
        "W25",
    ),
    _planned(
        "UNPREP-102",
        MUST,
        HELPER,
        "NodeUnprepareResources must succeed for a claim that is not prepared, and return an entry for it.",
        "W26",
    ),
    _planned(
        "UNPREP-103",
        MUST,
        HELPER,
        "NodeUnprepareResources must succeed even if the ResourceClaim no longer exists.",
        "W27",
    ),
    _planned(
        "UNPREP-104",
        SHOULD,
        HELPER,
        "NodeUnprepareResources should succeed even while the API server cannot be reached.",
        "W27",
    ),
    _planned(
        "UNPREP-105",
        MUST,
        HELPER,
        "The driver must unprepare claims by UID: a newer claim with the same name must stay prepared.",
        "W27",
    ),
    _planned(
        "UNPREP-106",
        SHOULD,
        DRA,
        "After NodeUnprepareResources, the node should have the same CDI spec files as before the claim was prepared.",
        "W25",
    ),
    _planned(
        "HEALTH-101",
        MAY,
        HEALTH,
        "A driver may report device health. Its first message then covers every published "
        "device, and it refreshes each before its timeout.",
        "W30",
        "health",
    ),
    _planned(
        "HEALTH-102",
        MAY,
        HEALTH,
        "A driver may report device health. When a stream is cancelled, it then releases what the stream held and accepts another.",
        "W30",
        "health",
    ),
    _planned(
        "HEALTH-103",
        MAY,
        HEALTH,
        "A driver may come without device health. It then rejects the call at once and does not block the caller.",
        "W30",
    ),
)
