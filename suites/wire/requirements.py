"""What the kubelet requires of a driver at its sockets. These requirements have no tests yet, so no run judges them.

A new test takes its sentence from here, and the ID stays.
"""

from testbed.conformance import MAY, MUST, SHOULD, WIRE, Level, Requirement

REGISTRATION = "k8s.io/kubelet: pkg/apis/pluginregistration/v1/api.proto; kubelet: pkg/kubelet/pluginmanager"
DRA = "k8s.io/kubelet: pkg/apis/dra/v1/api.proto; kubelet: pkg/kubelet/cm/dra/manager.go"
HELPER = "k8s.io/dynamic-resource-allocation: kubeletplugin/draplugin.go, interface DRAPlugin"
CDI = "Container Device Interface: SPEC.md in github.com/cncf-tags/container-device-interface"
DECLARED = "the driver file: spec.configuration.precedence"
HEALTH = "k8s.io/kubelet: pkg/apis/dra-health/v1/api.proto; KEP-4680, resource health in the status of a pod"


def _planned(id_: str, level: Level, source: str, sentence: str, covers: str, *features: str) -> Requirement:
    return Requirement(id_, sentence, level, WIRE, source, features=features, covers=tuple(covers.split()))


PLANNED = (
    _planned(
        "REG-101",
        MUST,
        REGISTRATION,
        "The driver must create its registration socket in the kubelet's plugin registry, with a unique name that does not "
        "start with a dot and a path short enough for a UNIX socket.",
        "W1",
    ),
    _planned(
        "REG-102",
        MUST,
        REGISTRATION,
        "The driver's GetInfo must return type DRAPlugin, the driver name of its ResourceSlices, "
        "and the absolute path of a reachable socket.",
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
        "The driver must list its supported versions as gRPC service names, and serve each of them.",
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
        "REG-109",
        SHOULD,
        REGISTRATION,
        "The driver should list its supported versions with the newest first.",
        "W4",
    ),
    _planned(
        "PREP-101",
        MUST,
        DRA,
        "For an allocated claim, NodePrepareResources must return exactly one entry, with the claim's UID, "
        "all allocated devices of the driver, and no error.",
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
        "When the driver is asked to prepare a prepared claim again, it must return the same result and create nothing more for the claim.",
        "W13 G13",
    ),
    _planned(
        "PREP-104",
        MUST,
        DRA,
        "NodePrepareResources must return an entry for each claim of the call, in any order of the claims.",
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
        "If a claim does not exist, is not allocated or only has devices of other drivers, the "
        "driver must prepare nothing for it and keep working.",
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
        "For a claim with admin access, the driver must prepare a device that is in use without affecting its "
        "user, and must not free the device when the claim ends.",
        "W20",
        "admin-access",
    ),
    _planned(
        "PREP-110",
        MUST,
        "API reference: ResourceClaim v1 resource.k8s.io, DeviceClaimConfiguration and OpaqueDeviceConfiguration",
        "The driver must refuse invalid configuration, ignore configuration for other drivers, and apply "
        "configuration to the requests that it names, or to all requests if it names none.",
        "W21",
        "configuration",
        "invalid-configuration",
    ),
    _planned(
        "PREP-111",
        MUST,
        DRA,
        "The driver must handle concurrent calls, for different claims and for the same claim, without a "
        "deadlock and with the same result as sequential calls.",
        "W22",
    ),
    _planned(
        "PREP-112",
        MUST,
        DRA,
        "The driver must end a cancelled call and release what the call holds, so that the next call succeeds. "
        "It must answer every other call within 45 s.",
        "W23 G11",
    ),
    _planned(
        "PREP-113",
        SHOULD,
        DRA,
        "The driver should answer a call without claims or with a claim that is listed twice, ignore unknown fields, "
        "and return an error for a malformed message.",
        "W24",
    ),
    _planned(
        "PREP-114",
        MUST,
        HELPER,
        "A driver that was killed at any point must be back within 30 s, with its sockets, slices and "
        "prepared claims, and must be able to unprepare them.",
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
        DECLARED,
        "If several configuration entries contradict each other, the driver should apply the one that its driver file declares.",
        "W21",
        "configuration",
        "configuration-precedence",
    ),
    _planned(
        "PREP-117",
        SHOULD,
        "API reference: ResourceClaim v1 resource.k8s.io, OpaqueDeviceConfiguration",
        "When the driver refuses invalid configuration, its error should name the invalid field.",
        "W21",
        "invalid-configuration",
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
        "A driver may report device health. Its first message then covers every published device, and the driver "
        "refreshes the health of each device before its timeout.",
        "W30",
        "health",
    ),
    _planned(
        "HEALTH-102",
        MAY,
        HEALTH,
        "A driver may report device health. When a health stream is cancelled, the driver then "
        "releases its resources and accepts a new stream.",
        "W30",
        "health",
    ),
    _planned(
        "HEALTH-103",
        MAY,
        HEALTH,
        "A driver may omit device health. It then rejects a health call at once, without blocking the caller.",
        "W30",
    ),
)
