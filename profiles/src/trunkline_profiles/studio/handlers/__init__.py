"""The work of the profile: charts, texts, pages and speech."""
