# What can be done here. Everything needs Go only; race also needs a C compiler.

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(shell go env GOPATH)/bin/golangci-lint

# Packages where goroutines share state.
RACE_PACKAGES := ./cmd/... ./ingest/... ./stream/... ./sink/... ./train/...

# How long make fuzz gives each target.
FUZZTIME := 5s

.DEFAULT_GOAL := help
.PHONY: help build test race lint fuzz generate quickstart bench bench-featurize bench-xrlinear bench-bert bench-stream bench-freshness bench-million kafka-up kafka-down s3-up s3-down test-real test-faults

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## compile bin/giantstream
	go build -o bin/giantstream ./cmd/giantstream

test: ## run all tests
	go test ./...

race: ## run the tests of concurrent packages under the race detector, the long ones left out
	go test -race -short -timeout 20m $(RACE_PACKAGES)

lint: ## check formatting, go vet and golangci-lint (installed if missing)
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	@$(GOLANGCI_LINT) version --short 2>/dev/null | grep -qxF $(GOLANGCI_LINT_VERSION:v%=%) || \
		go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	$(GOLANGCI_LINT) run

fuzz: ## fuzz every decoder, FUZZTIME=5s each
	.ci/fuzz $(FUZZTIME)

generate: ## make the sample graph again from the Go installation at hand
	go generate ./...

quickstart: ## run everything embedded, on the sample graph
	go run ./cmd/giantstream quickstart

bench: ## run all benchmarks
	go test -run '^$$' -bench . ./...

bench-featurize: ## featurization beside PECOS, on the Debian packages (Python)
	cmd/bench/featurize/run

bench-xrlinear: ## XR-Linear beside PECOS, on the Debian packages (Python)
	cmd/bench/xrlinear/run

bench-bert: ## BERT encoding and training beside PyTorch (Python)
	cmd/bench/bert/run

bench-stream: ## topic to Parquet beside other tools, on real servers (Java, Maven, Python)
	cmd/bench/stream/run throughput

bench-freshness: ## from a change to its embedding on the sink topic
	cmd/bench/stream/run freshness

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

test-faults: ## break everything RUNS=200 times from SEED; REAL=1 on servers as test-real has
ifdef REAL
	GIANTSTREAM_FAULT_RUNS=$(or $(RUNS),20) GIANTSTREAM_SEED=$(SEED) cmd/dev/test-real faults -v -timeout 3h
else
	GIANTSTREAM_FAULT_RUNS=$(or $(RUNS),200) GIANTSTREAM_SEED=$(SEED) \
		go test -count=1 -run '^TestFaults$$' -parallel 4 -v -timeout 3h ./cmd/giantstream
endif
