# What can be done here. Targets need only Go, and more where their help text says so; race also needs a
# C compiler.

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(shell go env GOPATH)/bin/golangci-lint

# The tests of the finished program are a module of their own, which ./... does not reach: the servers and tools that
# they need are no dependencies of the program.
E2E := go -C cmd/e2e

# Packages that start goroutines or share state between them, in their code or their tests other than by t.Parallel. To
# compile and link the tests of all others with the race detector would take longer than to run these. Nor are those
# among them that have no more than internal/parallel, which deals ranges to goroutines: their tests, or those of their
# users, compare the results of one worker with those of several, and arithmetic is ten times slower under the race
# detector. The end-to-end suite is not among them: it drives a program that is built without the race detector, and
# cmd/internal/service runs whole services inside the test's own process. Of its module, the packages that test in
# their own process are.
RACE_PACKAGES = $(shell grep -rlE --include='*.go' --exclude-dir=e2e --exclude-dir=bench --exclude-dir="*cuda" \
	'^[[:space:]]*go [[:alpha:]]|"sync|/errgroup"|"testing/synctest"' \
	cmd ingest stream sink train internal | xargs -n 1 dirname | sort -u | sed 's|^|./|')

# The time that make fuzz spends on each target.
FUZZTIME := 5s

.DEFAULT_GOAL := help
.PHONY: help build release image test test-all race lint fuzz generate quickstart \
	bench bench-check bench-featurize bench-xrlinear bench-bert bench-encode bench-similar bench-loader bench-stream \
	bench-freshness bench-questions bench-load bench-million kafka-up kafka-down s3-up s3-down spec \
	test-module test-program test-page test-packages test-real test-cuda test-faults sim mutate

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## compile bin/giantstream and bin/giantstream-iceberg
	go build -o bin/ ./cmd/giantstream ./cmd/giantstream-iceberg

release: ## programs, packages, manual pages and checksums in dist/ (VERSION=1.2.3)
	cmd/dev/release/build $(VERSION)

image: release ## the release as an image in dist/ (buildah)
	cmd/dev/release/image $(VERSION)

test: ## run the tests of all packages, without the long ones, of both modules
	@$(MAKE) --no-print-directory test-all TESTFLAGS="-short -vet=off $(TESTFLAGS)"

# The module of the finished program waits most, so its tests run beside the others; what they say is shown at the end.
test-all: ## run all tests
	@code=0; log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	$(MAKE) --no-print-directory test-program >"$$log" 2>&1 & program=$$!; \
	$(MAKE) --no-print-directory test-module || code=1; \
	wait $$program || code=1; cat "$$log"; exit $$code

# One package more than processors at a time: those that start processes and servers wait for them, and would hold up
# the others.
test-module: ## run all tests but those of the finished program
	@go test -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) -timeout 20m $(TESTFLAGS) ./...

test-program: ## run all tests of the finished program
	@$(E2E) test -p 2 -timeout 40m $(TESTFLAGS) ./...

race: ## run the tests of concurrent packages, except long ones, under the race detector
	@code=0; p=$$(($$(getconf _NPROCESSORS_ONLN) + 1)); \
	go test -p $$p -vet=off -race -short -timeout 40m $(RACE_PACKAGES) || code=1; \
	$(E2E) test -p $$p -vet=off -race -short -timeout 40m ./cli ./s3store || code=1; exit $$code

lint: ## check formatting, and run golangci-lint (installed if missing), which includes go vet
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	@$(GOLANGCI_LINT) version --short 2>/dev/null | grep -qxF $(GOLANGCI_LINT_VERSION:v%=%) || \
		go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	$(GOLANGCI_LINT) run
	cd cmd/e2e && $(GOLANGCI_LINT) run

fuzz: ## fuzz every decoder, FUZZTIME=5s each
	.ci/fuzz $(FUZZTIME)

generate: ## rebuild the sample graph from the installed Go
	go generate ./...

quickstart: ## run everything embedded, on the sample graph
	go run ./cmd/giantstream quickstart

bench: ## run all benchmarks
	go test -run '^$$' -bench . ./...

bench-check: ## speed of the working tree beside that of BASE=commit (default: the last tag)
	go run ./cmd/bench/check $(if $(BASE),-base $(BASE))

bench-featurize: ## featurization beside PECOS, on the Debian packages (Python)
	cmd/bench/featurize/run

bench-xrlinear: ## XR-Linear beside PECOS, on the Debian packages (Python)
	cmd/bench/xrlinear/run

bench-bert: ## BERT encoding and training beside PyTorch (Python)
	cmd/bench/bert/run

bench-encode: ## BERT encoding beside ONNX Runtime and OpenVINO (Python 3.11, fetches them)
	cmd/bench/encode/run

bench-similar: ## the index of similar items beside FAISS and USearch (Python)
	cmd/bench/similar/run

bench-loader: ## PyTorch's training sets beside pyarrow.dataset and MosaicML streaming (Python)
	cmd/bench/loader/run

bench-stream: ## topic to Parquet beside other tools, on real servers (Java, Maven, Python)
	cmd/bench/stream/run throughput

bench-freshness: ## time from a change to its embedding on the sink topic
	cmd/bench/stream/run freshness

bench-questions: ## filtered questions while attributes change
	cmd/bench/stream/run questions

bench-load: ## first load of a million nodes and five million edges from files
	go run ./cmd/bench/stream load

bench-million: ## three workers and brokers, a million nodes, one worker killed
	BROKERS=3 cmd/bench/stream/run million

kafka-up: ## start Apache Kafka on loopback, BROKERS=1 or 3 (Java, Maven)
	@cmd/dev/kafka/server up

kafka-down: ## stop it
	@cmd/dev/kafka/server down

s3-up: ## start an S3 server on loopback
	@cmd/dev/s3/server up

s3-down: ## stop it
	@cmd/dev/s3/server down

test-real: ## run the tests against Apache Kafka and an S3 server of their own
	cmd/dev/test-real

test-page: ## look at the service's page and at examples/shop in Chromium (Playwright); OUT=folder keeps screenshots
	go build -o bin/giantstream ./cmd/giantstream
	$(or $(GIANTSTREAM_PYTHON),python3) cmd/dev/browser/page.py bin/giantstream $(OUT)
	$(or $(GIANTSTREAM_PYTHON),python3) cmd/dev/browser/shop.py bin/giantstream $(OUT)

test-packages: release ## install the release's packages on clean roots (root, debootstrap, rpm)
	cmd/dev/release/test-packages

spec: ## check the models of the protocol exhaustively (Spin, gcc)
	.ci/spec

test-cuda: ## test the CUDA backend on an emulated device (g++, Python); MISTAKES=1 plants mistakes in its kernels
	.ci/cuda $(if $(MISTAKES),mistakes)

test-faults: ## run the fault suite RUNS=200 times from SEED; REAL=1 uses the servers of test-real
ifdef REAL
	GIANTSTREAM_FAULT_RUNS=$(or $(RUNS),20) GIANTSTREAM_SEED=$(SEED) cmd/dev/test-real faults -v -timeout 3h
else
	GIANTSTREAM_FAULT_RUNS=$(or $(RUNS),200) GIANTSTREAM_SEED=$(SEED) \
		$(E2E) test -count=1 -run '^TestFaults$$' -parallel 4 -v -timeout 3h .
endif

sim: ## simulate SEEDS=40000 seeds from START (default: the time), for a night
	go test -count=1 -run '^TestSimulation$$' -timeout 24h -v ./cmd/internal/sim \
		-seeds $(or $(SEEDS),40000) -start $(or $(START),$(shell date +%s)000)

mutate: ## break the protocol's code in one line at a time: at most one change may go unnoticed (an hour)
	go run ./cmd/dev/mutate
