import http from "node:http";
import { inspect } from "node:util";
import { mebibyte } from "./mebibyte.ts";

type AddRequest = (request: http.ClientRequest, ...rest: unknown[]) => void;

/** Of what the engine lists or knows of one thing, images of tenants included: docker-modem would join it to one text. */
const mostMegabytes = 128;

/**
 * Connections to the engine. dockerode waits forever for the rest of a response on a broken connection; here the
 * request fails, also where it is longer than any text can be, which would end this process.
 */
export function engineConnections(): http.Agent {
  // The options of Node's default agent.
  const agent = new http.Agent({ keepAlive: true, scheduling: "lifo", timeout: 5000 });
  // docker-modem inspects each request's options for a debug log: keep it from serializing all connections.
  Object.assign(agent, { [inspect.custom]: () => "engineConnections" });
  const own = agent as unknown as { addRequest: AddRequest };
  const addRequest = own.addRequest.bind(agent);
  own.addRequest = (request, ...rest) => {
    request.once("response", (answer) => {
      answer.once("error", (error) => request.emit("error", error));
      if (/\/json(?:\?|$)/.test(request.path)) bound(answer);
    });
    addRequest(request, ...rest);
  };
  return agent;
}

function bound(answer: http.IncomingMessage): void {
  let bytes = 0;
  answer.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > mostMegabytes * mebibyte)
      answer.destroy(new Error(`The engine's answer is longer than ${mostMegabytes} MB`));
  });
}
