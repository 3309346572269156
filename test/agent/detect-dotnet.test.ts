import { describe, expect, it } from "vitest";
import { chooseBaseImages } from "../../agent/image-build/base-image.ts";
import { detect } from "../../agent/image-build/detect/index.ts";
import { repositoryOf } from "../../agent/image-build/detect/repository.ts";
import { sourcesOf } from "../support/sources.ts";
import { dockerfileWith, none, plan, type Files } from "../support/detected.ts";

const variables = { plain: ["API_URL"], secret: ["TOKEN"], cacheId: "site_x-packages" };
const dockerfile = dockerfileWith(variables);

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
    expect(() => plan({ "a.sln": "" })).toThrow(/set rootDir to the project's folder/);
  });

  it("with a build command of its own is started by a start command", () => {
    const overrides = { buildCommand: "dotnet publish a -o out", startCommand: "dotnet out/A.dll" };
    const text = dockerfile(shop, overrides);
    expect(text).toContain("dotnet publish a -o out");
    expect(text).toContain("COPY --from=build --chown=1000:1000 /app /app");
    expect(() => plan(shop, { buildCommand: "make" })).toThrow(/set startCommand to what it builds/);
  });

  it("is published where the Procfile of an app for Heroku starts it", () => {
    const Procfile = "web: cd src/Web/bin/publish/; ./Web --urls http://*:$PORT\n";
    const text = dockerfile({ ...shop, Procfile });
    expect(text).toContain("--output /app/src/Web/bin/publish");
    expect(text).toContain("COPY --from=build --chown=1000:1000 /app /app");
    const ofOne = dockerfile({ "Web.csproj": sdk(".Web"), Procfile: "web: cd bin/publish && ./Web\n" });
    expect(ofOne).toContain("--output /app/bin/publish");
  });

  it("is built with the SDK of global.json and runs on the release of its framework", async () => {
    const asked = plan({ ...shop, "global.json": '{"sdk": {"version": "8.0.404"}}' });
    const { images } = await chooseBaseImages(asked, () => Promise.resolve(true));
    expect(images).toMatchObject({
      dotnet: "mcr.microsoft.com/dotnet/aspnet:8.0",
      dotnetSdk: "mcr.microsoft.com/dotnet/sdk:8.0.404",
    });
  });

  it("is of the release that a file of all projects names", () => {
    const files = (name: string) => ({
      "Web.csproj": '<Project Sdk="Microsoft.NET.Sdk.Web"></Project>',
      [name]: "<PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup>",
    });
    expect(plan(files("Directory.Build.props"))).toMatchObject({ version: "8.0" });
    expect(plan(files("Directory.Packages.props"))).toMatchObject({ version: "8.0" });
  });

  const refers = (to: string) => `${sdk(".Web")}<ProjectReference Include="${to}" />`;
  it.each<[string, Files]>([
    [
      "a project deeper than two folders",
      { "src/Web/Web.csproj": refers("..\\Modules\\Users\\Users.csproj") },
    ],
    ["a project by a variable", { "src/Web/Web.csproj": refers("$(Modules)Users.csproj") }],
    ["a file by name", { "src/Web/Web.csproj": `${sdk(".Web")}<Import Project="..\\..\\common.props" />` }],
    [
      "a file by that of all projects",
      { "Directory.Build.props": '<Import Project="build/common.props" />' },
    ],
    ["a file by that of all packages", { "Directory.Packages.props": '<Import Project="versions.props" />' }],
    ["a file of all projects in a folder", { "src/Directory.Build.props": "" }],
    ["a file of all packages in a folder", { "src/Web/Directory.Packages.props": "" }],
    ["a feed of a folder", { "src/NuGet.Config": "" }],
  ])("that is restored by %s is restored where the whole source is", (_, files) => {
    const text = dockerfile({ ...shop, ...files });
    expect(text.indexOf("COPY source/ ./")).toBeLessThan(text.indexOf("dotnet restore"));
  });

  it("that refers to projects which are listed is restored before the source is copied", () => {
    const text = dockerfile({ ...shop, "src/Web/Web.csproj": refers("../Core/Core.csproj") });
    expect(text.indexOf("COPY source/ ./")).toBeGreaterThan(text.indexOf("dotnet restore"));
  });

  it("below the root of its repository is built by what lies there for all projects", () => {
    const root = {
      "global.json": '{"sdk": {"version": "8.0.404"}}',
      "Directory.Build.props": "<TargetFramework>net8.0</TargetFramework>",
    };
    const app = sourcesOf({ "Web.csproj": '<Project Sdk="Microsoft.NET.Sdk.Web"></Project>' });
    const found = detect({ ...app, repository: repositoryOf(app, sourcesOf(root), "src/Web") }, none);
    expect(found).toMatchObject({ within: "src/Web", needsSource: true, sdk: "8.0.404", version: "8.0" });
    const between = sourcesOf({ "src/Directory.Packages.props": "", "test/Directory.Build.props": "" });
    expect(repositoryOf(app, between, "src/Web")).not.toBeNull();
    expect(repositoryOf(app, between, "source/Web")).toBeNull();
  });

  it("that refers to a project of another folder is built with the repository", () => {
    const app = { "Web.csproj": `${sdk(".Web")}<ProjectReference Include="..\\Core\\Core.csproj" />` };
    expect(repositoryOf(sourcesOf(app), sourcesOf({}), "Web")).not.toBeNull();
    expect(repositoryOf(sourcesOf({ "Web.csproj": sdk(".Web") }), sourcesOf({}), "Web")).toBeNull();
  });
});
