"""What MCP sees of the server: tools, resources, prompts, completions, subscriptions and questions, in both eras."""
