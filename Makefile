# Needs Go, and for the tests gcc (the race detector), PostgreSQL and MariaDB
# servers, Chromium and Python: `make deps` says what is missing, and as root on
# Debian installs it.

# Pinned, so that a new release never breaks a build that nobody changed.
GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2

# Runs a command with throwaway database servers that all packages share.
WITH_SERVERS := go run ./internal/testdb/run --

# How much longer than `make test` the long tests of `make soak` take, and how
# often it runs every test.
SOAK ?= 20
COUNT ?= 3

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this help
	@awk 'BEGIN { FS = ":.*## " } /^[a-z][a-z-]*:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: dev
dev: build ## Run Perdure on an embedded database, with samples
	bin/perdure dev

.PHONY: build
build: ## Build bin/perdure
	go build -o bin/perdure ./cmd/perdure

# SQLite, translated from C, is not ours to look for races in, and ten times slower
# when it is.
RACE := -race -gcflags='modernc.org/...=-race=false'
# Sixty programs are linked: without tables for a debugger, and looked at by vet once.
QUICK := -vet=off -ldflags='-s -w'

.PHONY: test
test: deps vet gofmt ## Install what is missing, then check and test everything
	CGO_ENABLED=1 PERDURE_REQUIRE_SERVERS=1 $(WITH_SERVERS) go test $(RACE) $(QUICK) -shuffle=on -timeout 60m ./...

.PHONY: deps
deps: ## Install, or name, what the tests need
	@scripts/deps.sh

.PHONY: vet
vet:
	go vet ./...

.PHONY: gofmt
gofmt:
	@files=$$(gofmt -l .) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted, run 'make fmt':"; echo "$$files"; exit 1; fi

.PHONY: lint
lint: ## Lint, with the architecture's import rules
	$(GOLANGCI_LINT) run ./...

.PHONY: fmt
fmt: ## Format the code
	$(GOLANGCI_LINT) fmt ./...

.PHONY: bench
bench: deps ## Run the benchmarks, and peers beside us in bench/
	PERDURE_REQUIRE_SERVERS=1 $(WITH_SERVERS) go test -run '^$$' -bench . -benchmem -timeout 1h ./...
	cd bench && go run .

.PHONY: soak
soak: deps ## Run every test COUNT=3 times, the long ones SOAK=20 times as long
	CGO_ENABLED=1 PERDURE_REQUIRE_SERVERS=1 PERDURE_SOAK=$(SOAK) $(WITH_SERVERS) go test $(RACE) -shuffle=on -count=$(COUNT) -timeout 24h ./...

.PHONY: man
man: ## Write the manual pages to bin/man
	go run ./internal/man/gen bin/man

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin
