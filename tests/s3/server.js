// The object storage of the tests: node server.js DIRECTORY PORT BUCKET. A port of 0 means a free
// one; what it became is printed as one line when the server is ready. Keys: S3RVER and S3RVER.
//
// POST /-/faults?kind=KIND&count=N makes the next N requests fail, and GET /-/faults says how many
// are left: KIND is a status such as 503, "drop" (the connection ends in the middle of the answer),
// "stall" (no answer at all) or "lose" (the request is done, its answer is not sent).
"use strict";

const http = require("http");
const S3rver = require("@20minutes/s3rver");

const [directory, port, bucket] = process.argv.slice(2);
const fault = { kind: "", count: 0 };

function control(request, response) {
  const query = new URL(request.url, "http://localhost").searchParams;
  if (request.method === "POST") {
    fault.kind = query.get("kind");
    fault.count = Number(query.get("count"));
  }
  response.end(String(fault.count));
}

function fail(request, response, store) {
  fault.count -= 1;
  const kind = fault.kind;
  if (kind === "stall") return;
  if (kind === "lose") {
    response.end = () => request.socket.destroy();
    store(request, response);
  } else if (kind === "drop") {
    response.writeHead(206, { "content-length": 1000000 });
    response.write("half", () => request.socket.destroy());
  } else {
    response.writeHead(Number(kind));
    response.end();
  }
}

async function main() {
  const storage = new S3rver({ directory, silent: true, configureBuckets: [{ name: bucket }] });
  await storage.configureBuckets();
  const store = storage.callback();
  const server = http.createServer((request, response) => {
    if (request.url.startsWith("/-/faults")) control(request, response);
    else if (fault.count > 0) fail(request, response, store);
    else store(request, response);
  });
  server.listen(Number(port), "127.0.0.1", () => console.log(server.address().port));
}

main();
