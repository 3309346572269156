import http from "node:http";

type AddRequest = (request: http.ClientRequest, ...rest: unknown[]) => void;

/** Connections to the engine. dockerode waits for ever for the rest of an answer whose connection broke: here its request fails. */
export function engineConnections(): http.Agent {
  // As Node's own agent.
  const agent = new http.Agent({ keepAlive: true, scheduling: "lifo", timeout: 5000 });
  const own = agent as unknown as { addRequest: AddRequest };
  const addRequest = own.addRequest.bind(agent);
  own.addRequest = (request, ...rest) => {
    request.once("response", (answer) => answer.once("error", (error) => request.emit("error", error)));
    addRequest(request, ...rest);
  };
  return agent;
}
