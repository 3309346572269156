const express = require("express");
const { marked } = require("marked");

const app = express();
const notes = ["# Welcome\n\nThis page was built from a Git repository **without a Dockerfile** and runs in a container on Berth."];

app.use(express.urlencoded({ extended: false, limit: "10kb" }));

const escapeHtml = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

const page = () => `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Notes</title>
<style>
  :root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent) }
  body { font: 17px/1.6 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1.25rem }
  h1:first-of-type { letter-spacing: -.02em }
  article { border: 1px solid var(--line); border-radius: 12px; padding: .25rem 1.25rem; margin: 1rem 0 }
  textarea { width: 100%; box-sizing: border-box; font: inherit; border: 1px solid var(--line); border-radius: 10px; padding: .75rem; background: none; color: inherit }
  button { font: inherit; font-weight: 600; border: 0; border-radius: 10px; padding: .6rem 1.2rem; margin-top: .5rem; background: #0b6e8f; color: #fff; cursor: pointer }
</style>
<h1>Notes</h1>
<form method="post"><textarea name="text" rows="3" maxlength="2000" placeholder="Write in Markdown …" required></textarea><button>Add note</button></form>
${notes.map((note) => `<article>${marked.parse(escapeHtml(note))}</article>`).join("")}
</html>`;

app.get("/health", (request, response) => response.json({ status: "ok" }));
app.get("/", (request, response) => response.type("html").send(page()));
app.post("/", (request, response) => {
  const text = String(request.body.text ?? "").trim().slice(0, 2000);
  if (text) notes.unshift(text);
  notes.length = Math.min(notes.length, 50);
  response.redirect(303, "/");
});

const port = Number(process.env.PORT ?? 3000);
const server = app.listen(port, "0.0.0.0", () => console.log(`listening on ${port}`));
process.on("SIGTERM", () => server.close(() => process.exit(0)));
