"""Access: who may do what. Companies, API keys, people, and how often each may call."""
