"""Receives traces, metrics and logs over OTLP/HTTP and decodes them with the classes that OpenTelemetry publishes for Python.

Prints its port, then a line of JSON for each span, data point and log line, and for each GET. Arguments: an HTTP status to answer with (default 200), and the
seconds that an answer takes (default 0).
"""

import gzip
import http.server
import json
import sys
import threading
import time

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

STATUS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
PRINTING = threading.Lock()
DELAY = float(sys.argv[2]) if len(sys.argv) > 2 else 0


def value(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(item) for item in any_value.array_value.values]
    return getattr(any_value, kind) if kind else None


def plain(attributes):
    return {attribute.key: value(attribute.value) for attribute in attributes}


def spans(body):
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "resource": plain(resource.resource.attributes), "schema": scope.schema_url, "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(), "parent": span.parent_span_id.hex(), "name": span.name, "kind": span.kind,
                    "attributes": plain(span.attributes), "links": [link.span_id.hex() for link in span.links],
                    "status": span.status.code, "message": span.status.message,
                    "start": span.start_time_unix_nano, "end": span.end_time_unix_nano,
                }


def points(body):
    for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                for point in getattr(metric, kind).data_points:
                    shown = {"resource": plain(resource.resource.attributes), "metric": metric.name, "unit": metric.unit, "kind": kind, "attributes": plain(point.attributes)}
                    if kind == "histogram":
                        shown["count"], shown["sum"] = point.count, point.sum
                    else:
                        shown["value"] = point.as_double
                    yield shown


def lines(body):
    for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
        for scope in resource.scope_logs:
            for line in scope.log_records:
                yield {
                    "event": line.event_name, "text": value(line.body), "severity": line.severity_text,
                    "trace": line.trace_id.hex(), "span": line.span_id.hex(), "attributes": plain(line.attributes),
                }


READERS = {"/v1/traces": ("span", spans), "/v1/metrics": ("point", points), "/v1/logs": ("line", lines)}


class Collector(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        time.sleep(DELAY)
        kind, read = READERS[self.path]
        for shown in read(body):
            shown["request"] = {"type": self.headers["content-type"], "key": self.headers.get("x-key")}
            # Signals come at the same time.
            with PRINTING:
                print(json.dumps({kind: shown}), flush=True)
        self.send_response(STATUS)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self):
        """Prints a mark: what was received before it is in the lines before it."""
        with PRINTING:
            print(json.dumps({"mark": self.path}), flush=True)
        self.send_response(204)
        self.end_headers()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
print(server.server_port, flush=True)
server.serve_forever()
