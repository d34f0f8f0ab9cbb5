// Package engine computes the decisions of one scheduling cycle. Its inputs are a cluster, a policy and the time. Its output is a Plan, in
// which each decision has a reason.
//
//	API objects --events--> live --deltas--> model.Cluster --+                                   +-- live: bind, evict, status, events
//	files, trace ---------> sim  --deltas--> model.Cluster --+--> Decide(cluster, policy, now) --+
//	policy + tables --policy.Load---------> policy.Policy ---+        = Plan, with reasons       +-- sim: report, scenario, next tick
//
// Package engine/reference defines what a cycle decides. It is written to be read, and it remembers nothing between cycles. The other
// packages compute the same plan faster, and tests compare the two plans byte for byte. Write a new behaviour in engine/reference first.
//
// A caller that runs many cycles uses a Decider. The Decider is the only place that remembers anything from one cycle to the next.
//
// Between the inputs and the Plan there is no I/O, no clock, no log, no randomness, and no goroutine that outlives a call. The same input
// gives the same bytes. One cycle has these steps:
//
//	Decide --> session.Session.Begin           computes what is constant during a cycle
//	       --> action.Begin                    opens one model.Txn
//	       --> Run(action) for each action of the pipeline
//	              step by step: admit, place   ask the Session, try in the Txn; then keep, hold or undo
//	       --> Statuses                        phases, conditions, counts; promises are still counted
//	       --> Close                           undoes what is only promised; adds reasons to waits
//
// # Packages
//
//	rules                  parses and checks expressions: what they read, how much they may cost. Knows nothing of scheduling
//	rules/eval             compiles checked expressions to closures, or to columns for many rows, and evaluates them within a budget
//	rules/source           parses YAML and JSON into values with line and column; lists mistakes with their positions
//	rules/layout           formats files of policies and tables, and keeps their comments
//	rules/typed            gives API objects to rows, typed by their schema; variables, texts that contain CEL, paths
//	rules/tables           Volcano's plugins, actions and default configuration as YAML, embedded
//	rules/jobplugins       the built-in job plugins as YAML, embedded: additions to the pods of a Job, and other objects
//	rules/admission        the built-in defaults and checks of admission as YAML, embedded
//	engine/seeds           sets the random seed of the property tests of a test binary
//	engine/digest          numbers that identify what plans decide or contain; engine/digest/sums compares them with a file
//	engine/follow          keeps derived data up to date with its objects: change logs with cursors, and slots
//	engine/cards           Volcano's notation for GPU cards: of nodes, of pods, and of bindings
//	engine/numa            chooses the CPUs of a pod from Numatopologies, as the kubelet would
//	engine/extender        questions to external services and their answers; an answer is an input with an age
//	engine/podspec         compares the specs of pods
//	engine/slab            allocates values, texts and lists in chunks
//	engine/subsets         lists the subsets of a small set, smaller subsets first
//	engine/rivals          remembers which jobs evicted pods of which jobs, to prevent circles of evictions
//	engine/unread          objects that the scheduler could not read completely, until a user corrects or deletes them
//	engine/model           the state: nodes, queues, jobs, tasks; deltas, undo log, change logs; the Plan
//	engine/volume          the nodes that a task's volumes allow, computed by the volume plugins of Kubernetes
//	engine/volume/none     replaces engine/volume in builds without that library
//	engine/topology        counts tasks by topology domain; evaluates affinity and spread terms of pods on a node
//	engine/disruption      the PodDisruptionBudgets that apply to a task, and how many more of its pods each allows to evict
//	engine/bucket          which tasks of a job belong together, from the task topology annotations of the job
//	engine/quota           how much each queue may use: algorithms over amounts and weights
//	engine/language        what a policy can express: types, fields and functions over a World, and what each reads
//	engine/policy          a compiled policy: sites, tables, rows, computed fields, verbs; what follows from what they read
//	engine/policy/params   the values that a policy sets for the params of a table: their types and bounds
//	engine/policy/facts    facts of each row, known before it is evaluated: its type, cost and reads, and how long its value is valid
//	engine/policy/kinds    the types of the parameters of a verb
//	engine/policy/join     joins several policies, each with queues of its own, into one policy
//	engine/policy/parts    what the rows of such a joined policy decide
//	engine/policy/rollback when a policy is rolled back, by its own settings
//	engine/policy/size     limits the size of a policy
//	engine/policy/text     writes a policy as text, as it is or with everything that it names
//	engine/policy/lint     finds mistakes in legal policies: rows, tables and names that decide nothing
//	engine/policy/coverage records which rows were evaluated in scenarios, and the values of their conditions
//	engine/verdict         the nodes on which a task fits, the best of them, and the reasons of the others; by classes of tasks
//	engine/session         a policy that runs on a cluster: evaluates each site, and orders queues, jobs and tasks
//	engine/volcano         converts configurations of Volcano's scheduler into policies
//	engine/kept            resources that are kept for pods that do not exist yet, so that later jobs do not take them
//	engine/report          texts for the decisions of a cycle: reasons, waits, conditions, phases, statuses
//	engine/explain         explains the decisions on one job, pod, queue or node, and what would help; for simulate and for live
//	engine/whatif          what the next cycle would decide after a hypothetical change: a cycle that is undone
//	engine/recording       records the inputs of cycles in files, and replays the cycles
//	engine/compare         compares two policies by what happens to jobs, in a world or a recording; the smallest world that differs
//	engine/eviction        searches victims for a task: on which node, which tasks, and why each of them is necessary
//	engine/action          the verbs from which every pipeline is built
//	engine                 this package: builds one cycle from its parts
//	engine/reference       the definition: the same cycle in its simplest form. reference/values defines values of expressions,
//	                       reference/answers sites, reference/devices the choice of devices, reference/eviction the choice of victims
//	engine/proof           checks evictions after the decision, without the code of the search
//	engine/page            style and components of the pages for browsers
//	engine/sim             a world of files with its own clock; scenarios; sim/openb and sim/conformance replay corpora
//	engine/try             answers the page that simulates policies in a browser, from two texts and without volumes
//	engine/sim/stored      objects of a world that were read from a cluster; skips objects with mistakes, as a scheduler does
//	engine/sim/classes     the PriorityClasses of a world; refuses pods that name other classes, as the API server does
//	engine/sim/textdiff    compares two texts line by line
//	engine/sim/choose      selects the policy of a world of files
//	engine/sim/manifest    files of objects, and the short format of a world, checked and converted into objects
//	engine/live            the scheduler in a cluster. The packages below it are its parts, and code that all programs in a cluster share:
//	engine/live/questions    answers questions about the last cycle, through an API behind the API server; checks permissions
//	engine/live/serving      selects the policy of the cluster that is used, rolls it back, and reports the status of each policy
//	engine/live/shadow       shadow policies: they decide on the same state without effect, and their differences are counted
//	engine/live/asks         asks extenders the questions of plans, between cycles
//	engine/live/outbox       writes to the API server, urgent writes first, at the rate that the API server accepts
//	engine/live/recovery     recovered panics: the position, the object that was being handled, and the row of the policy
//	engine/live/events       Events with all fields that clients of both event APIs of Kubernetes read
//	engine/live/beside       compares what another scheduler does with what a policy would have decided; writes nothing
//	engine/live/load         the measured load of nodes, from Prometheus
//	engine/live/lease        leader election: until when a process may write
//	engine/live/strip        removes the fields that no decision reads from objects, before they are stored
//	engine/live/scrape       serves metrics to clients that may read them
//	statemachines          lifecycles as data; statemachines/controller executes them, statemachines/controller/flows those of JobFlows
//	statemachines/cron     the Jobs of a CronJob, and the times of their next run
//	statemachines/flow     the Jobs of a JobFlow
//	statemachines/jobplugin  compiles job plugins, and applies them to one Job: its pods, and its other objects
//	statemachines/objects  the PodGroup and the pods of a Job, for the controllers and for sim
//	webhook                admission
//	crds                   the API: Go types by group, and their manifests
//	crds/decode            decodes one object, and names the field that is wrong; crds/informers: caches without undecodable objects
//	docs                   the reference of the language, generated from the declarations
//	deploy                 the manifests of the parts, the admission policies that protect them, and their alerts and dashboards
//	deploy/pages           recorded /metrics pages of the parts, on which tests run queries
//	cmd/celsius            the command line; cmd/celsius/cluster: commands for Jobs, Queues, pods and flows; cmd/celsius/lsp:
//	                       the language server for rules; cmd/celsius/schemas: JSON Schemas of all kinds
//	cmd/celsius/try        builds the page that simulates policies in a browser; cmd/celsius/try/wasm is the program in that page
//	cmd/celsius/dashboard  a cluster on a live page
//	cmd/playground         a whole cluster in one process, and the end-to-end tests; cmd/playground/bench measures the scheduler in one
//
// A package imports only packages that are simpler than itself. One test contains the table of imports. Another test limits the size of
// packages and types.
//
// # Glossary
//
// Each term has one meaning in the whole project.
//
//	cycle     one run of Decide
//	plan      all that a cycle decided: admits, binds, evictions, pipelines, holds, waits, statuses, errors
//	victim    a task that is evicted, or may be evicted, so that another task gets its resources
//	reason    why a decision was taken: site, table, rule, and a text for people
//	task      a pod, as a scheduler sees it
//	role      the tasks of a job that share a task-spec name
//	job       a PodGroup and its tasks
//	queue     contains jobs; has a quota
//	node      a machine, a row of the node table
//	site      a question of the scheduler that the rows of one section answer: jobOrder, predicates, scores ...
//	rule      a compiled row; a row is what the author wrote
//	table     a named set of rows with params
//	tier      a list of tables; an earlier tier has precedence over a later tier
//	policy    a compiled SchedulingPolicy: its tables, by site, and its actions
//	action    a named list of steps; a step is a verb with parameters
//	attribute a computed field of an object, declared by a table
//	session   a policy that runs on a cluster: it evaluates sites, and remembers results that are still valid
//	class     the tasks that agree in all that the active rows read
//	column    the verdicts or the scores of one row for one class: one entry per node
//	slot      the small number of an object while it exists; other packages index their data about the object by it
//	txn       one undo log over the state, with savepoints
//	kept, held, undone   the three results of a turn of a job: its tasks are bound, only reserved in this cycle, or not placed
package engine
