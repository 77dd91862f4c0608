/** For verbs that take one agent; see choose-agents.ts for several. */
export { agentLabel, agentNames } from '../text/agent-label.ts';
export { chooseAgent as findAgent } from './choose-agents.ts';
