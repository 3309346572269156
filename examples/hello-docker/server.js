const http = require("node:http");

const port = Number(process.env.PORT ?? 3000);

http
  .createServer((request, response) => {
    response.setHeader("Content-Type", "text/plain; charset=utf-8");
    response.end(`Hello from a Dockerfile: ${request.method} ${request.url}\n`);
  })
  .listen(port, "0.0.0.0", () => console.log(`listening on ${port}`));

process.on("SIGTERM", () => process.exit(0));
