import { describe, expect, it } from "vitest";
import { chooseBaseImages } from "../../agent/image-build/base-image.ts";
import { detect } from "../../agent/image-build/detect/index.ts";
import { repositoryOf } from "../../agent/image-build/detect/repository.ts";
import type { Overrides } from "../../agent/image-build/detect/sources.ts";
import { generateDockerfile } from "../../agent/image-build/dockerfile/index.ts";
import { sourcesOf } from "../support/sources.ts";

type Files = Record<string, string>;
const none: Overrides = { buildCommand: null, startCommand: null };
const plan = (files: Files, overrides: Partial<Overrides> = {}) =>
  detect(sourcesOf(files), { ...none, ...overrides });
const variables = { plain: ["API_URL"], secret: ["TOKEN"], cacheId: "site_x-packages" };
const dockerfile = (files: Files, overrides: Partial<Overrides> = {}) =>
  generateDockerfile(plan(files, overrides), variables);

const sdk = (name: string, properties = "") =>
  `<Project Sdk="Microsoft.NET.Sdk${name}"><PropertyGroup><TargetFramework>net8.0</TargetFramework>${properties}</PropertyGroup></Project>`;
const shop = {
  "Shop.sln": "",
  "src/Web/Web.csproj": sdk(".Web"),
  "src/Core/Core.csproj": sdk(""),
  "test/Web.Tests/Web.Tests.csproj": `${sdk(".Web")}<PackageReference Include="Microsoft.NET.Test.Sdk" />`,
  "src/Web/packages.lock.json": "{}",
};

describe("a .NET app", () => {
  it("of a solution is the web project, restored by its lock file before the source is copied", () =>
    expect(dockerfile(shop)).toMatchSnapshot());

  it("of one project is started by the name of its assembly", () => {
    expect(plan({ "api.csproj": sdk(".Web", "<AssemblyName>Shop.Api</AssemblyName>") })).toMatchObject({
      project: "api.csproj",
      version: "8.0",
      startCommand: "ASPNETCORE_URLS=http://+:$PORT dotnet Shop.Api.dll",
    });
    expect(plan({ "Bot.fsproj": sdk("", "<OutputType>Exe</OutputType>") })).toMatchObject({
      project: "Bot.fsproj",
    });
  });

  it("that runs in the browser is served as files", () => {
    const text = dockerfile({ "Pages.csproj": sdk(".BlazorWebAssembly") });
    expect(text).toContain("/app/out/wwwroot");
    expect(text).toMatch(/FROM caddy:2\n[^]*index\.html/);
  });

  it("that could be one of several is refused with how to build one", () => {
    const files = { "a.sln": "", "a/A.csproj": sdk(".Web"), "b/B.csproj": sdk(".Web") };
    expect(() => plan(files)).toThrow(
      /more than one app \(a\/A\.csproj, b\/B\.csproj\): set buildCommand .* dotnet publish a\/A\.csproj .* dotnet out\/A\.dll/,
    );
    expect(() => plan({ "a.sln": "" })).toThrow(/set rootDir to the folder of the project/);
  });

  it("with a build command of its own is started by a start command", () => {
    const overrides = { buildCommand: "dotnet publish a -o out", startCommand: "dotnet out/A.dll" };
    const text = dockerfile(shop, overrides);
    expect(text).toContain("dotnet publish a -o out");
    expect(text).toContain("COPY --from=build --chown=1000:1000 /app /app");
    expect(() => plan(shop, { buildCommand: "make" })).toThrow(/set startCommand to what it makes/);
  });

  it("is built with the SDK of global.json and runs on the release of its framework", async () => {
    const asked = plan({ ...shop, "global.json": '{"sdk": {"version": "8.0.404"}}' });
    const { images } = await chooseBaseImages(asked, () => Promise.resolve(true));
    expect(images).toMatchObject({
      dotnet: "mcr.microsoft.com/dotnet/aspnet:8.0",
      dotnetSdk: "mcr.microsoft.com/dotnet/sdk:8.0.404",
    });
  });

  it("that refers to a project of another folder is built with the repository", () => {
    const app = { "Web.csproj": `${sdk(".Web")}<ProjectReference Include="..\\Core\\Core.csproj" />` };
    expect(repositoryOf(sourcesOf(app), sourcesOf({}), "Web")).not.toBeNull();
    expect(repositoryOf(sourcesOf({ "Web.csproj": sdk(".Web") }), sourcesOf({}), "Web")).toBeNull();
  });
});
