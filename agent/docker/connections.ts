import http from "node:http";
import { inspect } from "node:util";

type AddRequest = (request: http.ClientRequest, ...rest: unknown[]) => void;

/** Connections to the engine. dockerode waits for ever for the rest of an answer whose connection broke: here its request fails. */
export function engineConnections(): http.Agent {
  // As Node's own agent.
  const agent = new http.Agent({ keepAlive: true, scheduling: "lifo", timeout: 5000 });
  // docker-modem writes out the options of each request, for a log that nobody reads: not with all there is on each connection.
  Object.assign(agent, { [inspect.custom]: () => "engineConnections" });
  const own = agent as unknown as { addRequest: AddRequest };
  const addRequest = own.addRequest.bind(agent);
  own.addRequest = (request, ...rest) => {
    request.once("response", (answer) => answer.once("error", (error) => request.emit("error", error)));
    addRequest(request, ...rest);
  };
  return agent;
}
