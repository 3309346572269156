import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, it } from "vitest";
import { openApiDocument } from "../../worker/openapi.ts";

it("the OpenAPI document is one by the schema of OpenAPI's own authors", async () => {
  const SITE_URL = "https://berth.example";
  const document = openApiDocument({ SITE_URL, WEBHOOK_HOST: SITE_URL });
  const validator = new Validator({ strict: false });
  const { valid, errors } = await validator.validate({ ...document });
  expect([valid, errors, validator.version]).toEqual([true, undefined, "3.1"]);
});
