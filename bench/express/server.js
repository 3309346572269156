const express = require("express");
const helmet = require("helmet");
const version = require("./version.json");

const app = express();
app.use(helmet());
app.get("/", (request, response) => response.send(`version ${version}`));
app.listen(process.env.PORT || 3000);
