package crds_test

// events are those that a policy of a Job may name.
const events = `*|CommandIssued|JobUpdated|OutOfSync|PodEvicted|PodFailed|PodPending|PodRunning|TaskCompleted|TaskFailed|Unknown`

// lastOfName is how the pattern of a condition's type ends.
const lastOfName = `(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`

// fields lists every field of Volcano's kinds with its type, default (=), bounds (>=, <=, items, len), pattern (~) and values (a|b). Two of
// the fields are ours: status.conditions of a Queue and status.limitConditions of a Job. The list is written by hand from Volcano's API: if
// the schema differs from it, look there before you change the list.
var fields = map[string]string{
	"CronJob": `
spec object required:jobTemplate,schedule
spec.concurrencyPolicy string =Allow Allow|Forbid|Replace
spec.failedJobsHistoryLimit integer =1 >=0
spec.jobTemplate object
spec.jobTemplate.metadata object
spec.schedule string
spec.startingDeadlineSeconds integer >=0
spec.successfulJobsHistoryLimit integer =3 >=0
spec.suspend boolean =false
spec.timeZone string
status object
status.active array
status.active[] object
status.lastScheduleTime time
status.lastSuccessfulTime time
`,
	"JobFlow": `
spec object
spec.flows array
spec.flows[] object required:name
spec.flows[].dependsOn object
spec.flows[].dependsOn.probe object
spec.flows[].dependsOn.probe.httpGetList array
spec.flows[].dependsOn.probe.httpGetList[] object
spec.flows[].dependsOn.probe.httpGetList[].httpHeader object
spec.flows[].dependsOn.probe.httpGetList[].httpHeader.name string
spec.flows[].dependsOn.probe.httpGetList[].httpHeader.value string
spec.flows[].dependsOn.probe.httpGetList[].path string
spec.flows[].dependsOn.probe.httpGetList[].port integer >=0 <=65535
spec.flows[].dependsOn.probe.httpGetList[].taskName string len<=253
spec.flows[].dependsOn.probe.taskStatusList array
spec.flows[].dependsOn.probe.taskStatusList[] object
spec.flows[].dependsOn.probe.taskStatusList[].phase string len<=63
spec.flows[].dependsOn.probe.taskStatusList[].taskName string len<=253
spec.flows[].dependsOn.probe.tcpSocketList array
spec.flows[].dependsOn.probe.tcpSocketList[] object required:port
spec.flows[].dependsOn.probe.tcpSocketList[].port integer >=0 <=65535
spec.flows[].dependsOn.probe.tcpSocketList[].taskName string len<=253
spec.flows[].dependsOn.targets array
spec.flows[].dependsOn.targets[] string
spec.flows[].name string len>=1
spec.flows[].patch object
spec.jobRetainPolicy string delete|retain
status object
status.completedJobs array
status.completedJobs[] string
status.conditions object
status.conditions{} object
status.conditions{}.createTime time
status.conditions{}.phase string
status.conditions{}.runningDuration string len<=64
status.conditions{}.taskStatusCount object
status.conditions{}.taskStatusCount{} object
status.conditions{}.taskStatusCount{}.phase object
status.conditions{}.taskStatusCount{}.phase{} integer
status.failedJobs array
status.failedJobs[] string
status.jobStatusList array
status.jobStatusList[] object
status.jobStatusList[].endTimestamp time
status.jobStatusList[].name string
status.jobStatusList[].restartCount integer
status.jobStatusList[].runningHistories array
status.jobStatusList[].runningHistories[] object
status.jobStatusList[].runningHistories[].endTimestamp time
status.jobStatusList[].runningHistories[].startTimestamp time
status.jobStatusList[].runningHistories[].state string
status.jobStatusList[].startTimestamp time
status.jobStatusList[].state string
status.pendingJobs array
status.pendingJobs[] string
status.runningJobs array
status.runningJobs[] string
status.state object
status.state.phase string Failed|Pending|Running|Succeed|Terminating
status.terminatedJobs array
status.terminatedJobs[] string
status.unKnowJobs array
status.unKnowJobs[] string
`,
	"JobTemplate": `
status object
status.jobDependsOnList array
status.jobDependsOnList[] string
`,
	"Job": `
spec object
spec.maxRetry integer =3 >=0
spec.minAvailable integer >=0
spec.minSuccess integer >=1
spec.networkTopology object
spec.networkTopology.highestTierAllowed integer >=0
spec.networkTopology.highestTierName string len<=253
spec.networkTopology.mode string =hard hard|soft
spec.plugins object
spec.plugins{} array
spec.plugins{}[] string
spec.policies array
spec.policies[] object
spec.policies[].action string
spec.policies[].event string ` + events + `
spec.policies[].events array
spec.policies[].events[] string ` + events + `
spec.policies[].exitCode integer
spec.policies[].timeout string len<=64
spec.priorityClassName string
spec.queue string =default
spec.runningEstimate string len<=64
spec.schedulerName string
spec.tasks array items>=1
spec.tasks[] object
spec.tasks[].dependsOn object
spec.tasks[].dependsOn.iteration string all|any
spec.tasks[].dependsOn.name array
spec.tasks[].dependsOn.name[] string
spec.tasks[].maxRetry integer =3
spec.tasks[].minAvailable integer >=0
spec.tasks[].name string len<=63 ~^[a-z0-9]([-a-z0-9]*[a-z0-9])?$
spec.tasks[].partitionPolicy object required:partitionSize,totalPartitions
spec.tasks[].partitionPolicy.minPartitions integer =0 >=0
spec.tasks[].partitionPolicy.networkTopology object
spec.tasks[].partitionPolicy.networkTopology.highestTierAllowed integer >=0
spec.tasks[].partitionPolicy.networkTopology.highestTierName string len<=253
spec.tasks[].partitionPolicy.networkTopology.mode string =hard hard|soft
spec.tasks[].partitionPolicy.partitionSize integer >=1
spec.tasks[].partitionPolicy.totalPartitions integer >=1
spec.tasks[].policies array
spec.tasks[].policies[] object
spec.tasks[].policies[].action string
spec.tasks[].policies[].event string ` + events + `
spec.tasks[].policies[].events array
spec.tasks[].policies[].events[] string ` + events + `
spec.tasks[].policies[].exitCode integer
spec.tasks[].policies[].timeout string len<=64
spec.tasks[].replicas integer >=0
spec.tasks[].template object
spec.tasks[].topologyPolicy string best-effort|none|restricted|single-numa-node
spec.ttlSecondsAfterFinished integer >=0
spec.volumes array
spec.volumes[] object required:mountPath
spec.volumes[].mountPath string len>=1 ~^[^:]+$
spec.volumes[].volumeClaim object
spec.volumes[].volumeClaimName string len<=253
status object
status.conditions array
status.conditions[] object required:status
status.conditions[].lastTransitionTime time
status.conditions[].status string
status.controlledResources object
status.controlledResources{} string
status.failed integer >=0
status.limitConditions array
status.limitConditions[] object required:status,type
status.limitConditions[].count integer >=0
status.limitConditions[].lastTransitionTime time
status.limitConditions[].limit integer >=0
status.limitConditions[].message string
status.limitConditions[].reason string
status.limitConditions[].status string
status.limitConditions[].type string
status.minAvailable integer >=0
status.pending integer >=0
status.retryCount integer >=0
status.running integer >=0
status.runningDuration string len<=64
status.state object
status.state.lastTransitionTime time
status.state.message string
status.state.phase string Aborted|Aborting|Completed|Completing|Failed|Pending|Restarting|Running|Terminated|Terminating
status.state.reason string
status.succeeded integer >=0
status.taskStatusCount object
status.taskStatusCount{} object
status.taskStatusCount{}.phase object
status.taskStatusCount{}.phase{} integer
status.terminating integer >=0
status.unknown integer >=0
status.version integer >=0
`,
	"Command": `
action string
message string
reason string
target object required:apiVersion,kind,name,uid
`,
	"Numatopology": `
spec object
spec.cpuDetail object
spec.cpuDetail{} object
spec.cpuDetail{}.core integer
spec.cpuDetail{}.numa integer
spec.cpuDetail{}.socket integer
spec.numares object
spec.numares{} object
spec.numares{}.allocatable string
spec.numares{}.capacity integer
spec.podAllocations array
spec.podAllocations[] object
spec.podAllocations[].containerAllocations array
spec.podAllocations[].containerAllocations[] object
spec.podAllocations[].containerAllocations[].allocations object
spec.podAllocations[].containerAllocations[].allocations{} string
spec.podAllocations[].containerAllocations[].name string
spec.podAllocations[].name string
spec.podAllocations[].namespace string
spec.podAllocations[].uid string
spec.policies object
spec.policies{} string
spec.resReserved object
spec.resReserved{} string
`,
	"PodGroup": `
spec object
spec.minMember integer >=0
spec.minResources object
spec.minResources{} quantity
spec.minTaskMember object
spec.minTaskMember{} integer
spec.networkTopology object
spec.networkTopology.highestTierAllowed integer >=0
spec.networkTopology.highestTierName string len<=253
spec.networkTopology.mode string =hard hard|soft
spec.priorityClassName string
spec.queue string =default
spec.subGroupPolicy array
spec.subGroupPolicy[] object
spec.subGroupPolicy[].labelSelector object
spec.subGroupPolicy[].matchLabelKeys array
spec.subGroupPolicy[].matchLabelKeys[] string
spec.subGroupPolicy[].minSubGroups integer =0 >=0
spec.subGroupPolicy[].name string len<=253
spec.subGroupPolicy[].networkTopology object
spec.subGroupPolicy[].networkTopology.highestTierAllowed integer >=0
spec.subGroupPolicy[].networkTopology.highestTierName string len<=253
spec.subGroupPolicy[].networkTopology.mode string =hard hard|soft
spec.subGroupPolicy[].subGroupSize integer =1 >=1
status object
status.conditions array
status.conditions[] object
status.conditions[].lastTransitionTime time
status.conditions[].message string
status.conditions[].reason string
status.conditions[].status string
status.conditions[].transitionID string
status.conditions[].type string
status.failed integer >=0
status.phase string Completed|Inqueue|Pending|Running|Unknown
status.running integer >=0
status.succeeded integer >=0
`,
	"Queue": `
spec object
spec.affinity object
spec.affinity.nodeGroupAffinity object
spec.affinity.nodeGroupAffinity.preferredDuringSchedulingIgnoredDuringExecution array
spec.affinity.nodeGroupAffinity.preferredDuringSchedulingIgnoredDuringExecution[] string
spec.affinity.nodeGroupAffinity.requiredDuringSchedulingIgnoredDuringExecution array
spec.affinity.nodeGroupAffinity.requiredDuringSchedulingIgnoredDuringExecution[] string
spec.affinity.nodeGroupAntiAffinity object
spec.affinity.nodeGroupAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution array
spec.affinity.nodeGroupAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[] string
spec.affinity.nodeGroupAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution array
spec.affinity.nodeGroupAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[] string
spec.capability object
spec.capability{} quantity
spec.dequeueStrategy string =traverse fifo|traverse
spec.deserved object
spec.deserved{} quantity
spec.dra object
spec.dra.capability object
spec.dra.capability{} object required:count
spec.dra.capability{}.capacity object
spec.dra.capability{}.capacity{} quantity
spec.dra.capability{}.count integer
spec.dra.deserved object
spec.dra.deserved{} object required:count
spec.dra.deserved{}.capacity object
spec.dra.deserved{}.capacity{} quantity
spec.dra.deserved{}.count integer
spec.dra.guarantee object
spec.dra.guarantee{} object required:count
spec.dra.guarantee{}.capacity object
spec.dra.guarantee{}.capacity{} quantity
spec.dra.guarantee{}.count integer
spec.extendClusters array
spec.extendClusters[] object
spec.extendClusters[].capacity object
spec.extendClusters[].capacity{} quantity
spec.extendClusters[].name string
spec.extendClusters[].weight integer
spec.guarantee object
spec.guarantee.resource object
spec.guarantee.resource{} quantity
spec.parent string
spec.priority integer >=0
spec.reclaimable boolean
spec.type string len<=253
spec.weight integer =1 >=1 <=65535
status object
status.allocated object
status.allocated{} quantity
status.completed integer >=0
status.conditions array
status.conditions[] object required:lastTransitionTime,message,reason,status,type
status.conditions[].lastTransitionTime time
status.conditions[].message string len<=32768
status.conditions[].observedGeneration integer >=0
status.conditions[].reason string len>=1 len<=1024 ~^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$
status.conditions[].status string False|True|Unknown
status.conditions[].type string len<=316 ~^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?` + lastOfName + `
status.inqueue integer >=0
status.pending integer >=0
status.reservation object
status.reservation.nodes array
status.reservation.nodes[] string
status.reservation.resource object
status.reservation.resource{} quantity
status.running integer >=0
status.state string Closed|Closing|Open|Unknown
status.unknown integer >=0
`,
}
