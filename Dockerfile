# Images of giantstream, of giantstream-iceberg (target iceberg) and, for compose.yaml, of an S3
# server (target s3). Each image holds one static program and little else. "make image" packs the
# programs of a release instead of building them here, with BINARIES=release. (The default is where
# it is used, since podman 4 does not see it here.)
ARG BINARIES

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY cmd/e2e/go.mod cmd/e2e/go.sum cmd/e2e/
RUN go mod download && go -C cmd/e2e mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/ ./cmd/giantstream ./cmd/giantstream-iceberg && \
	CGO_ENABLED=0 go -C cmd/e2e build -trimpath -ldflags='-s -w' -o /out/ ./s3
# An empty image has no /tmp. The programs write temporary files there, and the state to
# /var/lib/giantstream.
RUN doc=/root-of-image/usr/share/doc/giantstream && \
	mkdir -p /root-of-image/tmp /root-of-image/var/lib/giantstream $doc && chmod 1777 /root-of-image/tmp && \
	cp LICENSE $doc && go run ./cmd/dev/release/licences /out/giantstream /out/giantstream-iceberg >$doc/LICENSES-OF-MODULES

FROM scratch AS release
ARG TARGETARCH
COPY dist/image/${TARGETARCH}/ /

FROM ${BINARIES:-build} AS binaries

FROM scratch AS base
LABEL org.opencontainers.image.title=giantstream org.opencontainers.image.licenses=Apache-2.0
COPY --from=binaries --chown=65532:65532 /root-of-image/ /
USER 65532:65532
WORKDIR /var/lib/giantstream

FROM base AS s3
COPY --from=binaries /out/s3 /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/s3"]

FROM base AS iceberg
COPY --from=binaries /out/giantstream-iceberg /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/giantstream-iceberg"]
CMD ["run", "-c", "/etc/giantstream/giantstream.yaml"]

FROM base AS giantstream
COPY --from=binaries /out/giantstream /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/giantstream"]
CMD ["run", "-c", "/etc/giantstream/giantstream.yaml"]
