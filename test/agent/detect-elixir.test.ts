import { describe, expect, it } from "vitest";
import { chooseBaseImages } from "../../agent/image-build/base-image.ts";
import { dockerfileWith, plan } from "../support/detected.ts";

const variables = { plain: ["API_URL"], secret: ["TOKEN"], cacheId: "site_x-packages" };
const dockerfile = dockerfileWith(variables);

const phoenix = {
  "mix.exs":
    'def project do [app: :shop, version: "0.1.0"] end\n{:phoenix, "~> 1.8"}\n"assets.setup": ["tailwind.install"],\n"assets.deploy": ["tailwind shop"]\n',
  "mix.lock": "%{}",
  "config/config.exs": "",
  "config/prod.exs": "",
  "config/runtime.exs": "",
};

describe("an Elixir app", () => {
  it("of Phoenix is a release, made after its dependencies and its assets, and serves", () =>
    expect(dockerfile(phoenix)).toMatchSnapshot());

  it("without dependencies needs nothing of Hex", () => {
    const text = dockerfile({ "mix.exs": "[app: :web, deps: []]" });
    expect(text).not.toMatch(/local\.hex|build-essential|deps\.get/);
    expect(text).toContain("mix compile && mix release --overwrite");
  });

  it("starts the release that mix.exs names", () =>
    expect(plan({ "mix.exs": "[app: :a, releases: [\n  web: [applications: []]]]" })).toMatchObject({
      release: { name: "web", isListed: true },
      startCommand: "PHX_SERVER=true bin/web start",
    }));

  it("that is an umbrella without a release is refused with what to name", () => {
    const umbrella = { "mix.exs": '[apps_path: "apps"]' };
    expect(() => plan(umbrella)).toThrow(/name one in releases: of mix\.exs/);
    expect(plan(umbrella, { startCommand: "mix run --no-halt" })).toMatchObject({ release: null });
  });

  it("that says how it is started has all that was built in its image", () => {
    const text = dockerfile({ ...phoenix, Procfile: "web: mix phx.server\n" });
    expect(text).toContain("COPY --from=build --chown=1000:1000 /app /app");
    expect(text).toContain("COPY --from=build /opt/mix /opt/mix");
  });

  it("is built with the release that it names, or the newest of that one", async () => {
    const asked = plan({ ...phoenix, ".tool-versions": "elixir 1.18.3-otp-27\n" });
    const had: string[] = [];
    await chooseBaseImages(asked, (image) => Promise.resolve(had.push(image) > 1));
    expect(had).toEqual(["elixir:1.18.3-otp-27-slim", "elixir:1.18-slim"]);
  });
});
