// Calls tools of assay mcp by a client that others wrote. Reads JSON from stdin:
// {"command": [...], "calls": [{"name": ..., "arguments": {...}}]}; prints the tools and the results.
// With --stateless it is the client of revision 2026-07-28, else that of 2025-11-25.
import {readFileSync} from 'node:fs';

const stateless = process.argv.includes('--stateless');
const {Client} = await import(
    stateless ? '@modelcontextprotocol/client' : '@modelcontextprotocol/sdk/client/index.js');
const {StdioClientTransport} = await import(
    stateless ? '@modelcontextprotocol/client/stdio' : '@modelcontextprotocol/sdk/client/stdio.js');

const {command, calls} = JSON.parse(readFileSync(0, 'utf8'));
const client = new Client(
    {name: 'tests', version: '1'},
    stateless ? {versionNegotiation: {mode: {pin: '2026-07-28'}}} : {capabilities: {}});
await client.connect(new StdioClientTransport(
    {command: command[0], args: command.slice(1), env: process.env, stderr: 'inherit'}));
const results = [];
const {tools} = await client.listTools();
let progress = 0;
let last = '';
for (const {name, arguments: given} of calls) {
  // "$job" stands for the newest handle.
  const text = JSON.stringify(given).replaceAll('$job', last);
  const options = {timeout: 120000, onprogress: () => ++progress};
  const call = {name, arguments: JSON.parse(text)};
  const result = stateless ? await client.callTool(call, options) :
                             await client.callTool(call, undefined, options);
  last = result.structuredContent?.job ?? last;
  results.push(result);
}
const version = stateless ? client.getNegotiatedProtocolVersion?.() : undefined;
await client.close();
console.log(JSON.stringify({version, tools, results, progress}));
