# A static binary and certificates, for a user without rights.
#
# The base is empty by default: the program needs no file of a base. BASE names another one, such as
# a mirror of distroless static (user 65532 too), for scanners that expect a distribution.
ARG BASE=scratch

# The compiler runs on the machine's own platform, and builds for the target's.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags="-s -w -buildid= -X github.com/ratelimit/ratelimit/internal/command.version=$VERSION" -o /ratelimit ./cmd/ratelimit \
    && mkdir -p /empty/ratelimit /links \
    && ln -s ratelimit /links/limitador-server

FROM $BASE
# the authorities that DynamoDB's certificates come from
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /ratelimit /bin/ratelimit
# limitador-server is a link to it: the program is that command by this name
COPY --from=build /links/ /bin/
# where --data can be: a volume mounted here begins with this owner
COPY --from=build --chown=65532:65532 /empty/ratelimit /var/lib/ratelimit
# where the socket of administration is without --data
COPY --from=build --chown=65532:65532 /empty/ratelimit /run/ratelimit
USER 65532:65532
# 8081 gRPC for Envoy; 8080 HTTP for probes and metrics
EXPOSE 8081 8080
# All interfaces, for probes: the default of server.http.address in the configuration.
ENV RATELIMIT_HTTP_ADDRESS=0.0.0.0:8080
# Mount the configuration at /etc/ratelimit/ratelimit.yaml, or say --config, or --demo.
WORKDIR /etc/ratelimit
ENTRYPOINT ["/bin/ratelimit"]
CMD ["serve"]
