import { describe, expect, it } from "vitest";
import { chooseBaseImages } from "../../agent/image-build/base-image.ts";
import { toolNotes } from "../../agent/image-build/detect/tool-notes.ts";
import { dockerfileWith, plan } from "../support/detected.ts";
import { sourcesOf } from "../support/sources.ts";

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

  it("has npm's packages in assets/ installed before its assets are made", async () => {
    const manifest = {
      dependencies: { phoenix: "file:../deps/phoenix", alpinejs: "3" },
      engines: { node: "20" },
    };
    const files = {
      ...phoenix,
      "assets/package.json": JSON.stringify(manifest),
      "assets/package-lock.json": "",
    };
    const lines = dockerfile(files).split("\n");
    const at = (sign: string) => lines.findIndex((line) => line.includes(sign));
    const order = [
      "FROM node:24-bookworm-slim AS node",
      "COPY --from=node /usr/local/ /usr/local/",
      "COPY source/assets/package-lock.json source/assets/package.json ./assets/",
      "mix deps.get",
      "cd assets && npm ci",
      "COPY source/ ./",
      "mix assets.setup && mix assets.deploy",
    ].map(at);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(order).not.toContain(-1);
    const { images } = await chooseBaseImages(plan(files), () => Promise.resolve(true));
    expect(images.node).toBe("node:20-bookworm-slim");
    expect(toolNotes(sourcesOf({ ".tool-versions": "nodejs 20.1.0\n" }), plan(files))).toEqual([]);
  });

  it("has packages of npm that lie in its own folders when they are installed", () => {
    const manifest = { dependencies: { widget: "file:./vendor/widget" } };
    const text = dockerfile({ ...phoenix, "assets/package.json": JSON.stringify(manifest) });
    expect(text).toMatch(/COPY source\/ \.\/\n[^]*cd assets && npm install"/);
  });

  it("from before Phoenix 1.6 has its assets made by the script of their package.json", () => {
    const scripts = { deploy: "webpack --mode production" };
    const files = { "mix.exs": "[app: :shop]", "assets/package.json": JSON.stringify({ scripts }) };
    expect(plan(files)).toMatchObject({
      buildCommand: "mix compile && npm run deploy --prefix assets && mix phx.digest",
    });
    expect(plan({ ...phoenix, "assets/package.json": JSON.stringify({ scripts }) })).toMatchObject({
      buildCommand: "mix compile && mix assets.setup && mix assets.deploy",
    });
  });

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
