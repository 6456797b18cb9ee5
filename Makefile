# Modules: the root and every folder below it that has a go.mod of its own.
MODULES := $(sort $(patsubst %/,%,$(dir $(shell find . -name go.mod -not -path '*/.*' -not -path '*/testdata/*'))))
LINT    := $(CURDIR)/.tools/golangci-lint

# Stops at the first module in which the command fails.
each = @for m in $(MODULES); do echo "== $@ $$m"; (cd $$m && $(1)) || exit 1; done

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: programs vet lint ## Vet, lint and run all tests of all modules, with -race and on a real redis-server
	$(call each,REQUIRE_REDIS=1 go test -race -timeout 30m ./...)

.PHONY: vet
vet: ## Run go vet
	$(call each,go vet ./...)

.PHONY: lint fmt
lint: tools ## Run golangci-lint
	$(call each,$(LINT) run ./...)

fmt: tools ## Format all Go files (gofumpt, gci)
	$(call each,$(LINT) fmt ./...)

.PHONY: bench bench-compare
bench: redis ## Run every Go benchmark once
	$(call each,REQUIRE_REDIS=1 go test -run '^$$' -bench . -benchtime 1x ./...)

bench-compare: redis ## Measure dueq beside asynq and others, three rounds
	@cd bench/peers && go run .

DURATION ?= 10m
SEED     ?= 0
REDIS    ?= single

.PHONY: chaos soak
chaos: redis ## Break everything around workers and REDIS for DURATION by the plan of SEED; check the guarantees
	@cd chaos && go run . -redis $(REDIS) -duration $(DURATION) -seed $(SEED)

soak: redis ## The same without faults, with an eye on memory and goroutines
	@cd chaos && go run . -redis $(REDIS) -faults none -duration $(DURATION) -seed $(SEED)

.PHONY: cover
cover: redis ## Print the root module's test coverage by function
	@REQUIRE_REDIS=1 go test -coverpkg=./... -coverprofile=cover.out ./...
	@go tool cover -func=cover.out

.PHONY: programs redis tools
programs: ## Install what the tests run and is not there: redis-server, Chromium, the languages of clients and others
	@scripts/need redis-server chromium promtool curl node php python3 $(if $(filter Linux,$(shell uname)),systemd-analyze)

redis: ## Install redis-server unless it is there
	@scripts/need redis-server

tools: ## Build the pinned golangci-lint into .tools unless it is there
	@scripts/need-lint
