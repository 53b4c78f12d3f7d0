"""What a driver owes to the kubelet that calls it, sentence by sentence. There are no tests yet, so nothing is judged by these.

A test takes its sentence from here to its `@requirement`; the ids stay.
"""

from testbed.conformance import MAY, MUST, SHOULD, WIRE, Level, Requirement

REGISTRATION = "k8s.io/kubelet, pluginregistration/v1/api.proto; kubernetes pkg/kubelet/pluginmanager"
DRA = "k8s.io/kubelet, dra/v1/api.proto; kubernetes pkg/kubelet/cm/dra/manager.go"
HELPER = "k8s.io/dynamic-resource-allocation/kubeletplugin, DRAPlugin: the duties of a driver"
CDI = "github.com/cncf-tags/container-device-interface, SPEC.md"
ORDER = "sigs.k8s.io/dra-example-driver, GetOpaqueDeviceConfigs"
HEALTH = "k8s.io/kubelet, dra-health/v1/api.proto; KEP-4680"


def _planned(id_: str, level: Level, source: str, sentence: str, covers: str, *features: str) -> Requirement:
    return Requirement(id_, sentence, level, WIRE, source, features=features, covers=tuple(covers.split()))


PLANNED = (
    _planned(
        "REG-101",
        MUST,
        REGISTRATION,
        "The registration socket is a UNIX socket in the kubelet's registry, under a name of its own that does not begin with a dot, "
        "and its path is short enough to be bound.",
        "W1",
    ),
    _planned(
        "REG-102",
        MUST,
        REGISTRATION,
        "GetInfo says type DRAPlugin, the name that the driver's slices have, and the absolute path of a socket that can be reached.",
        "W2",
    ),
    _planned(
        "REG-103",
        MUST,
        REGISTRATION,
        "GetInfo answers within a second, whenever and by however many it is asked at once.",
        "W3",
    ),
    _planned(
        "REG-104",
        MUST,
        REGISTRATION,
        "The versions that a driver offers are names of services, the newest first, and each of them is served.",
        "W4",
    ),
    _planned(
        "REG-105",
        MUST,
        REGISTRATION,
        "A driver survives the news that its registration failed, and can be registered afterwards.",
        "W5",
    ),
    _planned(
        "REG-106",
        MUST,
        REGISTRATION,
        "As soon as a driver can be registered, its service takes calls.",
        "W6",
    ),
    _planned(
        "REG-107",
        MUST,
        REGISTRATION,
        "A driver serves several connections at once, also beside one that is idle, and takes the authority localhost.",
        "W7",
    ),
    _planned(
        "REG-108",
        SHOULD,
        HELPER,
        "A driver that is asked to end removes its sockets, finishes the calls under way, and ends in its time.",
        "W8",
    ),
    _planned(
        "PREP-101",
        MUST,
        DRA,
        "The answer for an allocated claim has an entry for its UID and no other, without an error, with all its devices of the driver.",
        "W9 G11",
    ),
    _planned(
        "PREP-102",
        MUST,
        DRA,
        "Each device of the answer has the pool and the name of the allocation, requests without subrequests, and is of no other driver.",
        "W10 G11",
    ),
    _planned(
        "PREP-103",
        MUST,
        HELPER,
        "A claim that is prepared again has the same answer again, and nothing more is made for it.",
        "W13 G13",
    ),
    _planned(
        "PREP-104",
        MUST,
        DRA,
        "The answer for many claims has an entry for each, whatever their order, and also where one is named twice.",
        "W15",
    ),
    _planned(
        "PREP-105",
        SHOULD,
        DRA,
        "A claim that cannot be prepared is refused in its own entry, and the claims beside it are prepared.",
        "W16 G11",
    ),
    _planned(
        "PREP-106",
        MUST,
        HELPER,
        "A claim whose UID is not that of the object under its name is refused, and nothing is prepared.",
        "W17",
    ),
    _planned(
        "PREP-107",
        MUST,
        HELPER,
        "For a claim that does not exist, is not allocated, or has devices of other drivers alone, nothing is prepared and nothing breaks.",
        "W18",
    ),
    _planned(
        "PREP-108",
        SHOULD,
        HELPER,
        "A device that is prepared for one claim is refused to another.",
        "W19",
    ),
    _planned(
        "PREP-109",
        MUST,
        "KEP-5018: DRA AdminAccess",
        "A claim with admin access gets a device that is in use, without harm to its user, and its end does not free the device.",
        "W20",
        "admin-access",
    ),
    _planned(
        "PREP-110",
        MUST,
        "kubernetes.io: Dynamic Resource Allocation, device configuration",
        "Configuration that is not valid is refused with the name of the field; others' is nothing, and a request has its own.",
        "W21",
        "configuration",
    ),
    _planned(
        "PREP-111",
        MUST,
        DRA,
        "Calls for many claims, and several for one, may come at the same time: none waits for ever, and the end is as if they had not.",
        "W22",
    ),
    _planned(
        "PREP-112",
        MUST,
        DRA,
        "A call that its caller gives up ends and holds nothing, the next one succeeds, and one that is not given up takes less than 45 s.",
        "W23 G11",
    ),
    _planned(
        "PREP-113",
        SHOULD,
        DRA,
        "A call without claims is answered, fields that nobody knows are passed over, and bytes that mean nothing get an error.",
        "W24",
    ),
    _planned(
        "PREP-114",
        MUST,
        HELPER,
        "A driver that was killed, wherever it was, comes back within 30 s: sockets, slices, prepared claims, and the end of those.",
        "W28 G12",
    ),
    _planned(
        "PREP-115",
        SHOULD,
        HELPER,
        "A driver whose memory is lost or broken says so or recovers, and never hands out devices that are in use.",
        "W29 G13",
    ),
    _planned(
        "PREP-116",
        SHOULD,
        ORDER,
        "Configuration is followed in its order, that of the class first: what comes later wins, and what is for all requests is for each.",
        "W21",
        "configuration",
    ),
    _planned(
        "CDI-101",
        MUST,
        CDI,
        "The CDI ids of an answer are well formed, and what was defined for one claim is no other claim's.",
        "W11",
    ),
    _planned(
        "CDI-102",
        MUST,
        CDI,
        "A CDI file is valid for the version that it names, is never seen half written, and every path of the host in it exists.",
        "W12",
    ),
    _planned(
        "CDI-103",
        MUST,
        "github.com/kubernetes/kubernetes issue 141433",
        "A CDI file that was lost is there again when the claim has been prepared again.",
        "W14",
    ),
    _planned(
        "CDI-104",
        SHOULD,
        DRA,
        "The CDI ids of an answer can be resolved before the answer comes.",
        "W11",
        "cdi",
    ),
    _planned(
        "UNPREP-101",
        MUST,
        DRA,
        "After unprepare the claim's device can be prepared for another claim.",
        "W25",
    ),
    _planned(
        "UNPREP-102",
        MUST,
        HELPER,
        "Unprepare of a claim that is not prepared succeeds, with an entry in the answer.",
        "W26",
    ),
    _planned(
        "UNPREP-103",
        MUST,
        HELPER,
        "Unprepare succeeds also when the claim is not there any more.",
        "W27",
    ),
    _planned(
        "UNPREP-104",
        SHOULD,
        HELPER,
        "Unprepare succeeds also while the API server cannot be reached.",
        "W27",
    ),
    _planned(
        "UNPREP-105",
        MUST,
        HELPER,
        "Unprepare goes by the UID: a later claim under the same name stays prepared.",
        "W27",
    ),
    _planned(
        "UNPREP-106",
        SHOULD,
        DRA,
        "After unprepare the node has no other CDI files than before.",
        "W25",
    ),
    _planned(
        "HEALTH-101",
        MAY,
        HEALTH,
        "The first report on a health stream covers every published device under its name, and each is refreshed within its time.",
        "W30",
        "health",
    ),
    _planned(
        "HEALTH-102",
        MAY,
        HEALTH,
        "A health stream that is given up frees what it held, and another one can be opened.",
        "W30",
        "health",
    ),
    _planned(
        "HEALTH-103",
        MAY,
        HEALTH,
        "A driver without health says so at once, and keeps nobody waiting.",
        "W30",
    ),
)
