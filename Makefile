# make help lists the targets.

CONTROLLER_GEN := sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0
GOTESTSUM      := gotest.tools/gotestsum@v1.13.0
GOLANGCI_LINT  := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# Where the cases to replay and the traces lie; they are no part of the repository.
CORPUS ?= ../shared
# What make up gives to the playground: ARGS="--nodes 20".
ARGS ?=
# How long each fuzz target runs.
T ?= 30s
# The benchmarks of which one cycle takes far less than making its world: they run three times, one cycle each.
MOVING := ^Benchmark(TakeBack|TakeBackAtWork|TakeBackSparing|Consolidate)$$
# The targets by which generate makes everything that is generated.
GENERATE := generate-deepcopy generate-crds generate-docs

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: build
build: ## build bin/celsius
	go build -o bin/celsius ./cmd/celsius

.PHONY: web
web: build ## build the page on which policies are tried, into bin/web; bin/celsius try serves it
	bin/celsius try build bin/web
	@wc -c bin/web/celsius.wasm.*

# From which seed the properties draw, so that what failed fails again; 0 is another one each time.
RAPID_SEED ?= 2449522028

# Where install puts programs, and by which of Volcano's names: make install VOLCANO="vcctl vsub vjobs vqueues vcancel vsuspend vresume".
BINDIR  ?= $(shell test -w /usr/local/bin && echo /usr/local/bin || echo $(HOME)/.local/bin)
VOLCANO ?=

.PHONY: install
install: build ## put celsius and kubectl's plugin of it into BINDIR, and with VOLCANO="vcctl ..." Volcano's names for it
	install -d $(BINDIR)
	install -m 755 bin/celsius $(BINDIR)/celsius
	for name in kubectl-celsius kubectl_complete-celsius $(VOLCANO); do ln -sf celsius $(BINDIR)/$$name; done
	@case ":$$PATH:" in *":$(BINDIR):"*) ;; *) echo "add $(BINDIR) to PATH: the shell does not look there yet" ;; esac

.PHONY: test
test: ## run all tests; at the end is told what did not run, and why
	RAPID_SEED=$(RAPID_SEED) go run $(GOTESTSUM) --format standard-quiet --format-hide-empty-pkg -- -timeout 45m ./...

.PHONY: race
race: ## run all tests with the race detector, but for those in which Kubernetes would be compiled anew
	go test -race -timeout 60m $$(go list ./... | grep -v /cmd/playground)

.PHONY: e2e
e2e: ## run the end-to-end tests only: a control plane in the process, played nodes
	go test -count=1 -timeout 45m ./cmd/playground

.PHONY: browser
browser: ## install Chromium, in which a test looks at the pages that simulate writes; Debian and Ubuntu, as root
	@command -v chromium >/dev/null || { apt-get update && apt-get install -y --no-install-recommends chromium; }

# Volcano itself, for a test beside it. Its module leaves out the API types that it takes from a folder; the module of these stands in.
VOLCANO_VERSION := v1.14.1
VOLCANO_APIS    := v1.14.0

.PHONY: volcano
volcano: ## build Volcano's own scheduler and controllers into bin/volcano, to be tried and measured beside; some 3 minutes
	@test -x bin/volcano/scheduler || { set -e; dir=$$(mktemp -d); trap 'rm -rf '$$dir EXIT; \
		from=$$(go mod download -json volcano.sh/volcano@$(VOLCANO_VERSION) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'); \
		test -n "$$from" || { echo "the module of Volcano $(VOLCANO_VERSION) cannot be had"; exit 1; }; \
		cp -r "$$from/." $$dir; chmod -R u+w $$dir; cd $$dir; \
		go mod edit -replace volcano.sh/apis=volcano.sh/apis@$(VOLCANO_APIS); \
		mkdir -p $(CURDIR)/bin/volcano; \
		go build -mod=mod -o $(CURDIR)/bin/volcano ./cmd/controller-manager ./cmd/scheduler; \
		cd installer/helm/chart/volcano/crd/bases; \
		cp topology.* shard.* config.* $(CURDIR)/bin/volcano; }

.PHONY: up
up: ## start a whole cluster with the product in it, in one process; Ctrl-C ends it
	@echo "building the playground; the first time this compiles Kubernetes, about 5 minutes on two cores"
	go build -o bin/playground ./cmd/playground
	bin/playground $(ARGS)

.PHONY: verify
verify: generate format tidy lint imports ## generate, format, tidy, lint; then nothing may have changed
	git diff --exit-code
	@new=$$(git ls-files --others --exclude-standard); test -z "$$new" || { echo "not in git:"; echo "$$new"; exit 1; }

.PHONY: generate
generate: $(GENERATE) ## generate code, manifests and documents

.PHONY: generate-deepcopy
generate-deepcopy:
	go run $(CONTROLLER_GEN) object paths=./crds/...

.PHONY: generate-crds
generate-crds:
	go run $(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true paths=./crds/... output:crd:dir=crds/manifests
	go run ./crds/generate crds/manifests

.PHONY: generate-docs
generate-docs:
	go run ./cmd/celsius docs docs

.PHONY: format
format: ## format the code
	go run $(GOLANGCI_LINT) fmt

.PHONY: tidy
tidy: ## bring go.mod in line with the code
	go mod tidy

.PHONY: lint
lint: ## lint the code
	go run $(GOLANGCI_LINT) run

.PHONY: imports
imports: ## check who imports whom
	go test -count=1 -run '^TestImports$$' ./engine

.PHONY: bench
bench: ## run the benchmarks on one processor, five times, some fifteen minutes
	GOMAXPROCS=1 go test -run '^$$' -bench . -skip '$(MOVING)' -benchmem -benchtime 0.3s -count 5 -timeout 30m ./engine/...
	GOMAXPROCS=1 go test -run '^$$' -bench '$(MOVING)' -benchmem -benchtime 1x -count 3 -timeout 30m ./engine

.PHONY: bench-live
bench-live: build ## measure the live scheduler beside two floors and kube-scheduler: the better part of an hour on an idle machine
	go build -o bin/playground ./cmd/playground
	bin/playground bench-live $(ARGS)

.PHONY: bench-jobs
bench-jobs: build ## measure Jobs in four shapes, from asked for to collected, beside a floor: half an hour on an idle machine
	go build -o bin/playground ./cmd/playground
	bin/playground bench-jobs $(ARGS)

.PHONY: bench-webhook
bench-webhook: ## measure admission on one processor: Jobs of ten tasks at 200 a second, and objects that are meant to keep it busy
	GOMAXPROCS=1 go test -run '^$$' -bench '^BenchmarkReviewsAt200$$' -benchtime 2000x ./webhook
	GOMAXPROCS=1 go test -run '^$$' -bench '^BenchmarkHostile$$' -benchmem -benchtime 20x ./webhook

.PHONY: conformance
conformance: ## replay the recorded cases in CORPUS
	@test -d $(CORPUS)/conformance || { echo "SKIPPED: no corpus at $(CORPUS)/conformance"; exit 3; }
	go build -o bin/celsius ./cmd/celsius
	bin/celsius simulate conformance $(CORPUS)/conformance
	@out=$$(CORPUS=$(abspath $(CORPUS)) CORPUS_REQUIRED=1 go test -count=1 -v -run '^TestRecorded' ./statemachines/... ./webhook) || { echo "$$out"; exit 1; }; \
		echo "$$out" | grep -o '[a-z-]*: [0-9]* passed.*'

.PHONY: openb
openb: ## reproduce the published results on the GPU trace in CORPUS
	@test -d $(CORPUS)/traces/openb || { echo "SKIPPED: no corpus at $(CORPUS)/traces/openb"; exit 3; }
	go build -o bin/celsius ./cmd/celsius
	bin/celsius simulate trace openb --verify --trace $(CORPUS)/traces/openb
	bin/celsius simulate trace openb --verify --trace $(CORPUS)/traces/openb --policy samples/policies/openb/celsius.yaml --policy samples/policies/openb/fgd.yaml \
		--workload gpuspec10 --mix cpu=25 --mix multi=35 --mix models=30,multi=20 --seeds 1-3

.PHONY: fuzz
fuzz: ## run every fuzz target for T
	@set -e; for pkg in $$(go list ./...); do listed=$$(go test -list '^Fuzz' $$pkg); \
		for target in $$(echo "$$listed" | grep '^Fuzz' || true); do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(T) $$pkg; \
		done; done

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
