# The image of a release: the binary was built before. See .goreleaser.yaml.
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
# The address is reachable from outside the container: there must be a token, see
# "perdure token create".
ENV PERDURE_LISTEN=0.0.0.0:7070 PERDURE_SENT_DIR=/data/sent
EXPOSE 7070
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/perdure", "healthcheck", "--server", "http://127.0.0.1:7070"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/perdure"]
CMD ["serve"]
