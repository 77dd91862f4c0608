/** Finds the agent for a command that takes only one agent. choose-agents.ts resolves several agents. */
export { agentLabel, agentNames } from '../text/agent-label.ts';
export { chooseAgent as findAgent } from './choose-agents.ts';
