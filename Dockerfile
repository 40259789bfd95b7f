# A static binary, and nothing else, for a user without rights.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.version=${VERSION}" -o /ratelimit ./cmd/ratelimit \
    && mkdir -p /empty/ratelimit

FROM scratch
# whom to trust: DynamoDB is asked over TLS
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /ratelimit /bin/ratelimit
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
