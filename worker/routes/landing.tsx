import { Hono } from "hono";
import { call } from "../api/call.ts";
import type { AppEnv } from "../app-env.ts";
import { contextFor } from "../middleware/context.ts";
import { offersSignUp } from "../middleware/page.ts";
import { countedAddress, takeForRequest } from "../middleware/limit.ts";
import { LandingPage } from "../pages/landing.tsx";
import { show } from "./show.ts";

/** The first page of people without a session; for everybody else it is their overview (dashboard.ts). */
export const landing = new Hono<AppEnv>().get("/", async (c, next) => {
  if (c.get("hasSession") === true) return next();
  await takeForRequest(c, "address", countedAddress(c));
  const { data } = await call(contextFor(c, { type: "link" }), "listPacks", { limit: 100 });
  return show(c, <LandingPage packs={data} signUp={offersSignUp(c)} />);
});
