/** Finds the agent for a command that takes only one; choose-agents.ts resolves several. */
export { agentLabel, agentNames } from '../text/agent-label.ts';
export { chooseAgent as findAgent } from './choose-agents.ts';
