# The image of a release, with a binary that was already built. See .goreleaser.yaml.
FROM golang:1.26 AS files
RUN mkdir -p /data

FROM scratch
ARG TARGETPLATFORM
COPY --from=files /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=files /usr/share/zoneinfo /usr/share/zoneinfo
COPY $TARGETPLATFORM/perdure /perdure
COPY --from=files --chown=65532:65532 /data /data
USER 65532:65532
WORKDIR /data
VOLUME /data
# The address is reachable from outside the container, so the database must have an
# API token: see "perdure token create".
ENV PERDURE_LISTEN=0.0.0.0:7070 PERDURE_SENT_DIR=/data/sent
EXPOSE 7070
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/perdure", "healthcheck", "--server", "http://127.0.0.1:7070"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/perdure"]
CMD ["serve"]
