import js from "@eslint/js";
import globals from "globals";

const views = { group: ["./views/*"], message: "Only main.js knows the views; call update()." };

export default [
  { ignores: ["**/vendor/**"] },
  js.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    rules: { eqeqeq: "error", "no-var": "error", "prefer-const": "error" },
  },
  {
    files: ["**/static/*.js"],
    ignores: ["**/main.js"],
    rules: { "no-restricted-imports": ["error", { patterns: [views] }] },
  },
];
