# The product: one static binary that runs as nobody and writes nothing.
#
#   docker build -t registry.example.com/celsius:1.0 .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /celsius ./cmd/celsius

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /celsius /celsius
USER 65532:65532
ENTRYPOINT ["/celsius"]
