/** In a module of its own, so that the Worker contains nothing else of better-auth/api, which is loaded on first use. */
export { createAuthMiddleware } from "better-auth/api";
