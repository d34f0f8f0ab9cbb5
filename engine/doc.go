// Package engine decides: (cluster, policy, now) in, Plan out, with a reason for everything in it.
//
//	API objects --events--> live --deltas--> model.Cluster --+                                   +-- live: bind, evict, status, events
//	files, trace ---------> sim  --deltas--> model.Cluster --+--> Decide(cluster, policy, now) --+
//	policy + tables --policy.Load---------> policy.Policy ---+        = Plan, with reasons       +-- sim: report, scenario, next tick
//
// What a cycle decides is defined by engine/reference, which is written to be read, and remembers nothing; what follows is the same made
// fast, held to it byte for byte. A new behaviour is written there first.
//
// Who runs cycle after cycle has a Decider, which remembers between them; there is no other place where anything is remembered.
//
// Between the inputs and the Plan there is no I/O, no clock, no log, no randomness, and no goroutine that outlives a
// call: the same input gives the same bytes. One cycle goes
//
//	Decide --> session.Session.Begin           what settles once a cycle is computed
//	       --> action.Begin                    opens one model.Txn
//	       --> Run(action) for each action of the pipeline
//	              step by step: admit, place   ask the Session's sites, try in the Txn, keep, hold or undo
//	       --> Statuses                        phases, conditions, counts, while promises still count
//	       --> Close                           what is only promised is undone; waits get their reasons
//
// # Packages
//
//	rules                  text -> checked expression; what it reads, what it may cost. Knows nothing of scheduling
//	rules/eval             checked expression -> closures, columns of many rows -> value, within a budget
//	rules/source           YAML and JSON -> values that know their place; issues with positions
//	rules/layout           files of policies and tables in one form, with their comments
//	rules/typed            objects of an API -> values that rows read, typed by their schema; variables, texts with CEL, paths
//	rules/tables           Volcano's plugins, actions and default configuration as YAML, embedded
//	rules/jobplugins       what plugins add to the pods of Jobs, and make beside them, as YAML, embedded
//	rules/admission        what is filled in and refused before it is stored, as YAML, embedded
//	engine/seeds           what the properties of a test binary draw from
//	engine/digest          what plans decide, and all that they contain, as numbers to compare; engine/digest/sums compares them with a file
//	engine/follow          how what is kept beside objects follows them: logs with cursors, and slots
//	engine/cards           Volcano's words for GPU cards: what nodes tell, pods ask for, and bindings write
//	engine/numa            which CPUs of a node a pod will have: what Numatopologies tell, and what kubelets choose
//	engine/extender        what services outside are asked, and what they said: inputs with an age
//	engine/podspec         what two pods have alike
//	engine/slab            values, texts and lists made by the chunk
//	engine/subsets         subsets of a small set, smaller ones first
//	engine/rivals          of which jobs pods went for which others, and so who would close a circle of evictions
//	engine/unread          objects that the scheduler could not read completely, until they are corrected or deleted
//	engine/model           the one state: nodes, queues, jobs, tasks; deltas in, undo log, change logs; the Plan
//	engine/volume          which nodes a task's volumes let it go to: Kubernetes' volume plugins as a library, fed by the model
//	engine/volume/none     the same where there is no such library
//	engine/topology        who is placed in which topology domain, and what pods' terms of affinity and spread say of a node
//	engine/disruption      which PodDisruptionBudgets are about a task, and how many more of its pods each lets go
//	engine/bucket          which tasks of a job belong together, by what its owner says of its roles
//	engine/quota           who may use how much: algorithms over amounts and weights
//	engine/language        what a policy can say: types, fields and functions over a World, each with what it reads
//	engine/policy          a policy compiled: sites, tables, rows, computed fields, verbs; what follows from what they read
//	engine/policy/params   what a policy sets of a table's params: their types, values and bounds
//	engine/policy/facts    what is known of each row before it is asked: what it gives, costs and reads, how long that holds
//	engine/policy/kinds    what a parameter of a verb can be
//	engine/policy/join     one policy of several that stand beside each other
//	engine/policy/parts    what the rows of policies decide that stand beside each other, each with queues of its own
//	engine/policy/rollback when a policy is to be taken back, by its own word
//	engine/policy/size     how large a policy may be
//	engine/policy/text     a policy written down again, with all that it names written out
//	engine/policy/lint     what is legal in a policy and hardly meant: rows, tables and names that decide nothing
//	engine/policy/coverage which rows were asked while scenarios ran, and how their conditions turned out
//	engine/verdict         on which nodes a task can be placed, which is best, and why not on the others: by classes of tasks
//	engine/session         a policy at work on a cluster: it answers each site's question, and orders queues, jobs and tasks
//	engine/volcano         configurations of Volcano's scheduler, converted into policies
//	engine/kept            places kept for pods that are being made, so that nobody who comes later takes them
//	engine/report          words for what a cycle decided: reasons, waits, conditions, phases, statuses
//	engine/explain         what a cycle decided of one job, pod, queue or node, why, and what would help: for simulate and for live
//	engine/whatif          what the next cycle would decide if something were otherwise: a cycle that is undone
//	engine/recording       what cycles were decided from, kept in files, and decided again
//	engine/compare         how jobs fare by one policy and by another, in a world or as recorded; the smallest world that shows it
//	engine/eviction        room for a task: on which node, who goes for it, and why none of them can be spared
//	engine/action          the verbs of which every pipeline is made
//	engine                 this: one cycle from its parts
//	engine/reference       the same cycle as plainly as it can be said: the definition. reference/values says what expressions give,
//	                       reference/answers what sites answer, reference/devices which devices are given, reference/eviction who goes
//	engine/proof           evictions checked after they were decided, without what finds them
//	engine/page            the look and the components of the pages that are shown in a browser
//	engine/sim             a world made of files, with a clock of its own; scenarios; sim/openb and sim/conformance replay corpora
//	engine/try             what the page asks on which policies are tried in a browser: simulate from two texts, without volumes
//	engine/sim/stored      objects of a world that were read from a cluster; it leaves out objects with mistakes, as a scheduler does
//	engine/sim/classes     the PriorityClasses of a world, and the pods that the API server refuses because they name others
//	engine/sim/textdiff    how two texts differ, line by line
//	engine/sim/choose      by which policy a world of files runs
//	engine/sim/manifest    files of objects, and the short format of a world, checked and read into objects
//	engine/live            the scheduler at work in a cluster. Below it are parts of its own, and what all that runs there has in common:
//	engine/live/questions    who may ask about the last cycle, and the answers, as an API behind the API server
//	engine/live/serving      which of the cluster's policies is obeyed, when one is taken back, and what is told of each
//	engine/live/shadow       policies that decide beside it, with no consequences, and in what they differ
//	engine/live/asks         what plans would have answered by extenders, asked between cycles
//	engine/live/outbox       writes to the API server, the urgent ones first, as many at once as it takes
//	engine/live/recovery     recovered panics: the place, the object that was handled, and the row of the policy
//	engine/live/events       Events, so that clients of both of Kubernetes' APIs of events find all they look for
//	engine/live/beside       what another scheduler does, compared with what a policy would have decided; nothing is written
//	engine/live/load         the measured load of nodes, asked of Prometheus
//	engine/live/lease        taking turns: until when a process may write
//	engine/live/strip        objects without what no decision reads, before they are kept
//	engine/live/scrape       metrics, for those who may read them
//	statemachines          lifecycles as data; statemachines/controller obeys them, of JobFlows statemachines/controller/flows
//	statemachines/cron     when the Jobs of a CronJob are due, and what they are
//	statemachines/flow     what the Jobs of a JobFlow are
//	statemachines/jobplugin  job plugins compiled, and at work on one Job: its pods, and what stands beside it
//	statemachines/objects  what controllers make of a Job: its PodGroup and its pods, for the controllers and for sim
//	webhook                admission
//	crds                   the API: Go types by group, and their manifests
//	crds/decode            one object at a time, with the field that is wrong; crds/informers: caches that leave out what cannot be decoded
//	docs                   the reference of the language, written from the declarations
//	deploy                 the manifests of the parts, the admission policies that guard them, and what watches over them
//	deploy/pages           what the parts serve at /metrics after some work, on which tests try queries
//	cmd/celsius            the command line; cmd/celsius/cluster: what it shows and does of Jobs, Queues, pods and flows; cmd/celsius/lsp
//	                       helps those who write rules in their editors, cmd/celsius/schemas writes JSON Schemas of all kinds
//	cmd/celsius/try        the page on which policies are tried in a browser, and the making of it; cmd/celsius/try/wasm is what runs there
//	cmd/celsius/dashboard  a cluster on a live page
//	cmd/playground         a whole cluster in one process, and the end-to-end tests; cmd/playground/bench measures the scheduler in one
//
// Arrows go to plainer things; a test holds the table of who imports whom, another how large packages and types may be.
//
// # Glossary
//
// One word for one thing, throughout.
//
//	cycle     one run of Decide
//	plan      all that a cycle decided: admits, binds, evictions, pipelines, holds, waits, statuses, errors
//	victim    a task that goes, or may go, so that another has its room
//	reason    why: site, table, rule, and a text for people
//	task      a pod, as a scheduler sees it
//	role      the tasks of a job that share a task-spec name
//	job       a PodGroup and its tasks
//	queue     what jobs stand in; owner of a quota
//	node      a machine, a row of the node table
//	site      a kind of question that rows of one section answer: jobOrder, predicates, scores ...
//	rule      a compiled row; "row" is the same as its author wrote it
//	table     a named set of rows with params
//	tier      a list of tables; tiers go by precedence
//	policy    a compiled SchedulingPolicy: its tables, by site, and its actions
//	action    a named list of steps; a step is a verb with parameters
//	attribute a computed field of an object, declared by a table
//	session   a policy at work on a cluster: it answers sites, and remembers what still holds
//	class     the tasks that agree in all that the active rows read
//	column    the verdicts, or the scores of one row, of one class: an entry a node
//	slot      the small number of an object while it is there, by which others keep what they know of it
//	txn       one undo log over the state, with savepoints
//	kept, held, undone   the three endings of a job's turn
package engine
