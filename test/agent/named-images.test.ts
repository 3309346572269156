import { expect, it } from "vitest";
import { namedImages } from "../../agent/image-build/named-images.ts";

it.each<[string, string[]]>([
  ["FROM nginx\n", ["nginx"]],
  [
    "# syntax=docker/dockerfile:1\nfrom --platform=linux/amd64 ghcr.io/a/b:1.2 as Build\nFROM build\n",
    ["ghcr.io/a/b:1.2"],
  ],
  ["FROM a:1 AS one\nFROM \\\n  b:2\nFROM a:1\nCOPY --from=one / /\n", ["a:1", "b:2"]],
  ["ARG TAG=1\nARG BASE\nFROM node:${TAG}-slim\nFROM $BASE\n", ["node:1-slim", "php:8"]],
  // Of a stage of its own, nobody's, always the same, and nothing that is a name.
  ["FROM scratch\nARG A=a\nFROM $A\nFROM a@sha256:00\nFROM ${X:-a}\nFROM ../a\nRUN <<E\nFROM b\nE\n", []],
])("names the images that stages begin with: %j", (dockerfile, images) => {
  expect(namedImages(dockerfile, { BASE: "php:8" })).toEqual(images);
});
