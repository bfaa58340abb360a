"""Receives traces over OTLP/HTTP and decodes them with the classes that OpenTelemetry publishes for Python.

Prints its port, then a line of JSON for each span. Argument: an HTTP status to answer with (default 200).
"""

import http.server
import json
import sys

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Collector(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            shared = {a.key: MessageToDict(a.value) for a in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    def plain(attributes):
                        return {a.key: next(iter(MessageToDict(a.value).values()), None) for a in attributes}

                    attributes = plain(span.attributes)
                    print(json.dumps({
                        "path": self.path, "type": self.headers["content-type"], "key": self.headers.get("x-key"),
                        "service": shared.get("service.name"), "trace": span.trace_id.hex(), "id": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(), "name": span.name, "attributes": attributes,
                        "events": [{"name": e.name, "attributes": plain(e.attributes)} for e in span.events],
                        "status": span.status.code, "took": span.end_time_unix_nano - span.start_time_unix_nano,
                    }), flush=True)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
print(server.server_port, flush=True)
server.serve_forever()
