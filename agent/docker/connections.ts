import http from "node:http";
import { inspect } from "node:util";

type AddRequest = (request: http.ClientRequest, ...rest: unknown[]) => void;

/**
 * Connections to the engine. dockerode waits forever for the rest of a response on a broken connection; here the
 * request fails.
 */
export function engineConnections(): http.Agent {
  // The options of Node's default agent.
  const agent = new http.Agent({ keepAlive: true, scheduling: "lifo", timeout: 5000 });
  // docker-modem inspects each request's options for a debug log: keep it from serializing all connections.
  Object.assign(agent, { [inspect.custom]: () => "engineConnections" });
  const own = agent as unknown as { addRequest: AddRequest };
  const addRequest = own.addRequest.bind(agent);
  own.addRequest = (request, ...rest) => {
    request.once("response", (answer) => answer.once("error", (error) => request.emit("error", error)));
    addRequest(request, ...rest);
  };
  return agent;
}
