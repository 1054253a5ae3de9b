# Needs Go, and for the tests gcc (the race detector), PostgreSQL and MariaDB
# servers, Chromium and Python: `make deps` says what is missing, and as root on
# Debian installs it.

# Pinned, so that a new release never breaks an unchanged build.
GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2

# Runs a command with throwaway database servers that all packages share.
WITH_SERVERS := go run ./internal/test/testdb/run --

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
# Many tests wait for a timer or a child process, so more of them, and more packages, run
# at a time than there are cores. Two shards run at a time, so that the last packages of one
# do not leave a core idle.
PACKAGES := $(shell getconf _NPROCESSORS_ONLN)
QUICK := -vet=off -ldflags='-s -w' -parallel 4 -p $(PACKAGES)
# A program with the race detector sleeps for a second before it exits, if not told
# otherwise. Tests start many such programs. Reports under way are still waited for.
NO_NAP := GORACE=atexit_sleep_ms=0
# In these packages only SQLite is tested with the race detector, and servers without it:
# the code that runs concurrently is the same, and the detector triples its time. make soak
# tests all databases with it.
SERVED := ./server ./fsm ./flow ./task ./internal/test/engine ./actor ./hook ./alarm ./internal/test/kinds
# Some tests run without the race detector, which doubles or triples their time and finds
# nothing in them that it does not find elsewhere. make soak runs all of them with it, and
# internal/archtest sees that each test is run once.
#
# Tests with these names, in these packages: interleavings, whose sessions take turns; the
# cases of XState, one after the other; processes that are killed, and so never report a
# race; and mutants, which write without the engine.
PLAIN := ^Test(InterleavingsOnPostgres$$|.*Meet|.*Corpus|.*Interleaved$$|.*Kill(ed|ing)(Processes|Writers)|.*ThroughKills$$|TheCheckerCatchesEveryMutant$$)
PLAIN_PACKAGES := ./alarm ./fsm ./flow ./actor ./statechart ./internal/test/torture
# All tests of these packages: a browser in front of the server, and commands in front of
# the API, whose concurrency is that of the server, the API and the engine, and the tests of
# those run with the detector; a cluster of servers; programs in other languages;
# interleavings; and documents, rules of the source, statements, cron expressions and
# statecharts, where nothing runs concurrently. The longest is the first.
UNRACED := ./ui/uitest ./internal/test/galera ./internal/cli ./internal/effect ./internal/store ./internal/test/sqlapp ./docs ./internal/site ./internal/cron ./internal/test/proptest/statechart ./internal/archtest ./internal/man ./deploy
# Packages start in this order, the longest first: none is left alone at the end.
LONGEST := ./internal/test/torture ./statechart

.PHONY: test
test: deps vet gofmt ## Install what is missing, then check and test everything
	PERDURE_REQUIRE_SERVERS=1 $(WITH_SERVERS) $(MAKE) --no-print-directory --keep-going --jobs=2 tests
	@$(MAKE) --no-print-directory test-versions

# The oldest and the newest version, in a short form: every statement and the tables, and
# the tests that all kinds of work pass. make soak tests all versions.
VERSIONS ?= 14 18

.PHONY: test-versions
test-versions: ## Run a short form of the tests on VERSIONS="14 18" of PostgreSQL, with npm
	@for bin in $$(scripts/postgres.sh $(VERSIONS)); do \
		echo "PostgreSQL of $$bin"; export PERDURE_TEST_ONLY=postgres PERDURE_TEST_POSTGRES_BIN=$$bin PERDURE_REQUIRE_SERVERS=1; \
		go test $(QUICK) -run 'Statement|Catalogs' ./internal/store && go test $(QUICK) -timeout 60m $(if $(SOAKED),$(SERVED),./internal/test/kinds) || exit 1; \
	done

.PHONY: test-shard
test-shard: deps ## Run a part of the tests: SHARD=servers, plain, unraced, embedded, race or stacks
	PERDURE_REQUIRE_SERVERS=1 $(WITH_SERVERS) $(MAKE) --no-print-directory tests-$(SHARD)

# The longest shards start first. The first two compile different things: one of them is with
# the race detector. A shard that fails does not keep the others from running.
.PHONY: tests tests-servers tests-race tests-unraced tests-embedded tests-plain tests-stacks
tests: tests-servers tests-race tests-unraced tests-embedded tests-plain tests-stacks

tests-servers:
	PERDURE_TEST_ONLY=postgres,mysql go test $(QUICK) -shuffle=on -timeout 60m -skip '$(PLAIN)' $(SERVED)
	PERDURE_TEST_POOL=1 go test $(QUICK) -shuffle=on -timeout 60m -run 'Test(Rows|Functions|TheRows)' ./internal/test/kinds

tests-race:
	all=$$(go list ./...) && without=$$(go list $(UNRACED) $(SERVED)) && CGO_ENABLED=1 $(NO_NAP) go test $(RACE) $(QUICK) -shuffle=on -timeout 60m -skip '$(PLAIN)' $(LONGEST) $$(echo "$$all" | grep -vxF "$$without")

tests-unraced:
	go test $(QUICK) -shuffle=on -timeout 60m $(UNRACED)

tests-embedded:
	CGO_ENABLED=1 PERDURE_TEST_ONLY=sqlite $(NO_NAP) go test $(RACE) $(QUICK) -shuffle=on -timeout 60m -skip '$(PLAIN)' $(SERVED)

tests-plain:
	go test $(QUICK) -shuffle=on -timeout 60m -run '$(PLAIN)' $(PLAIN_PACKAGES)

# A module of its own: users never get the libraries that it tests. GORM's driver would compile
# SQLite with cgo.
tests-stacks:
	cd internal/test/stacks && CGO_ENABLED=0 go test -ldflags='-s -w' -shuffle=on -timeout 60m ./...

.PHONY: deps
deps: ## Install, or name, what the tests need
	@scripts/deps.sh

.PHONY: vet
vet:
	go vet ./...

# Not a part of `make test`: each system's first run compiles SQLite for it, which
# takes minutes. 32 bits are refused by name; see platform.go.
VET_SYSTEMS := windows/amd64 darwin/amd64 darwin/arm64 linux/arm64

.PHONY: vet-all
vet-all: ## Vet for Windows, macOS and arm64; see that 32 bits are refused
	@for s in $(VET_SYSTEMS); do \
		echo "go vet for $$s"; GOOS=$${s%/*} GOARCH=$${s#*/} CGO_ENABLED=0 go vet ./... || exit 1; \
	done
	@echo "go build for linux/386"; said=$$(GOOS=linux GOARCH=386 CGO_ENABLED=0 go build ./... 2>&1) && { echo "32 bits are not refused"; exit 1; }; \
	others=$$(echo "$$said" | grep -v -e '^#' -e need_a_64_bit_platform -e needs_a_64_bit_platform); \
	if [ -n "$$others" ]; then echo "$$others"; exit 1; fi

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

# What make check tests: the packages that users import, and the core.
CHECKED := . ./schema ./outbox ./fault ./retry ./hook ./fsm ./alarm ./task/... ./actor/... ./statechart ./dispatch ./monitor ./perduretest ./internal/core ./internal/work ./internal/unit ./internal/store ./internal/table ./internal/cron ./internal/edge ./internal/api ./internal/archtest

.PHONY: check
check: vet gofmt ## Check and test on SQLite only: no servers, no root, under 90 s
	PERDURE_TEST_ONLY=sqlite go test -short $(QUICK) $(CHECKED)

FUZZTIME ?= 1m

.PHONY: fuzz
fuzz: ## Run each fuzz test for FUZZTIME=1m
	@grep -rno --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | while IFS=: read -r file _ name; do \
		echo "$${name#func } in $$(dirname $$file)"; \
		go test -run '^$$' -fuzz "^$${name#func }\$$" -fuzztime $(FUZZTIME) "$$(dirname $$file)" || exit 1; \
	done

.PHONY: bench
bench: deps ## Run the benchmarks, and the comparison with other systems in bench/
	PERDURE_REQUIRE_SERVERS=1 $(WITH_SERVERS) go test -run '^$$' -bench . -benchmem -timeout 1h ./...
	cd bench && go run .

.PHONY: soak
soak: deps ## Run every test COUNT=3 times, the long ones SOAK=20 times as long
	CGO_ENABLED=1 PERDURE_REQUIRE_SERVERS=1 PERDURE_SOAK=$(SOAK) $(WITH_SERVERS) go test $(RACE) -shuffle=on -count=$(COUNT) -timeout 24h ./...
	@$(MAKE) --no-print-directory test-versions VERSIONS="14 15 16 17 18" SOAKED=1

.PHONY: man
man: ## Write the manual pages to bin/man
	go run ./internal/man/gen bin/man

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin
